import Crypto
import Hummingbird
import RedisDC

/// The limits of how often clients may call, which all nodes count together.
struct RequestLimits: Sendable {
    let coordinator: Coordinator
    let configuration: GatewayConfiguration

    /// Counts a request of a session.
    ///
    /// - Throws: `too-many-requests` beyond the limit, and counts nothing then.
    func countRequest(of session: Session) async throws {
        guard let rate = configuration.requestsPerSecond else { return }
        try await count("gateway:session:\(session.id)", rate, per: .seconds(1), burst: 2 * rate)
    }

    /// Counts a login from an address, and one of a user from that address: clients elsewhere cannot use up the user's
    /// own attempts.
    func countLogin(of user: String, from address: String?) async throws {
        let subscriber = address.map { Gateway.subscriber(of: $0) }
        if let subscriber {
            let rate = configuration.loginsFromAddressPerMinute
            try await count("gateway:address:\(Self.hash(subscriber))", rate, per: .seconds(60), burst: rate)
        }
        let rate = configuration.loginsOfUserPerMinute
        // The length separates the address from the user.
        let pair = "\(subscriber?.utf8.count ?? 0):\(subscriber ?? ""):\(user)"
        try await count("gateway:login:\(Self.hash(pair))", rate, per: .seconds(60), burst: rate)
    }

    private func count(_ name: String, _ rate: Int, per period: Duration, burst: Int) async throws {
        let decision: RateLimiter.Decision
        do throws(RedisDCError) {
            decision = try await coordinator.rateLimiter(name, rate: rate, per: period, burst: burst).tryAcquire()
        } catch {
            var error = error
            // A count is no effect of the call.
            error.mayHaveRun = false
            throw error
        }
        guard decision.isAllowed else { throw Problem.tooManyRequests(retryAfter: decision.retryAfter) }
    }

    /// Names of limits have no braces and a maximum length; a hash fits any name.
    private static func hash(_ text: String) -> String { SHA256.hash(data: Array(text.utf8)).hexadecimal }
}

/// Refuses requests beyond the limit of their session.
struct RequestLimitMiddleware<Parent: RequestContext>: RouterMiddleware {
    let limits: RequestLimits

    func handle(
        _ request: Request, context: CallContext<Parent>,
        next: (Request, CallContext<Parent>) async throws -> Response
    ) async throws -> Response {
        if let session = context.verified?.session { try await limits.countRequest(of: session) }
        return try await next(request, context)
    }
}
