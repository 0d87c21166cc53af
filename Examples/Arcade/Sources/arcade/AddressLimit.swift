import Crypto
import Foundation
import Gateway
import HTTPTypes
import Hummingbird
import RedisDC

/// Limits the calls that need no session by the client's address, at all nodes together.
struct AddressLimit: Sendable {
    let coordinator: Coordinator
    /// Whether a proxy adds the client's address to the header `X-Forwarded-For`.
    let trustsForwardedFor: Bool

    /// Counts a call.
    ///
    /// - Parameters:
    ///   - purpose: of the call. Each purpose is counted by itself.
    ///   - rate: the maximum number of calls in a minute.
    /// - Throws: an `HTTPError` with the status 429 beyond the limit, and 503 if Redis cannot be reached.
    func check(
        _ purpose: String, perMinute rate: Int, _ request: Request, _ context: some RequestContext
    ) async throws(HTTPError) {
        guard let address = address(of: request, context) else { return }
        let hash = SHA256.hash(data: Data(Gateway.subscriber(of: address).utf8)).prefix(16)
        let name = "address \(purpose) \(hash.map { String(format: "%02x", $0) }.joined())"
        let decision: RateLimiter.Decision
        do {
            decision = try await coordinator.rateLimiter(name, rate: rate, per: .seconds(60), burst: rate).tryAcquire()
        } catch { throw HTTPError(.serviceUnavailable, message: "the limit of calls cannot be checked") }
        guard decision.isAllowed else {
            throw HTTPError(
                .tooManyRequests, headers: [.retryAfter: "\(decision.retryAfter.components.seconds + 1)"],
                message: "too many calls from this address")
        }
    }

    private func address(of request: Request, _ context: some RequestContext) -> String? {
        let forwarded = trustsForwardedFor ? request.headers[HTTPField.Name("X-Forwarded-For")!] : nil
        return forwarded?.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) }
            ?? context.address
    }
}
