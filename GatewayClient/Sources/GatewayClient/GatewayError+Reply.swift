import AsyncHTTPClient
import NIOCore
import NIOPosix

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Errors made from replies and from failures of the network.
extension GatewayError {
    /// The problem details of RFC 9457, as far as they are used.
    private struct Problem: Decodable {
        var type: String?
        var title: String?
        var detail: String?
        var time: Int?
        var mayHaveRun: Bool?
        var reason: String?
    }

    /// Makes the error of a reply that is no success.
    ///
    /// - Parameter retryAfter: the value of the header `Retry-After`.
    init(status: Int, retryAfter: String?, body: [UInt8]) {
        let problem = try? JSONDecoder().decode(Problem.self, from: Data(body))
        let prefix = "urn:redisdc:"
        if let problem, let type = problem.type, type.hasPrefix(prefix), type.count > prefix.count {
            self.init(
                Code(String(type.dropFirst(prefix.count))),
                [problem.title, problem.detail].compactMap { $0 }.joined(separator: ": "), status: status)
            time = problem.time
            reason = problem.reason
        } else {
            // Something on the way has replied, such as a proxy.
            let code: Code = status >= 500 ? .unavailable : status == 429 ? .tooManyRequests : .unexpectedReply
            self.init(code, "a reply with the status \(status), which is not the gateway's", status: status)
        }
        mayHaveRun = status >= 500 && problem?.mayHaveRun != false
        self.retryAfter = retryAfter.flatMap(Self.delay)
    }

    /// Reads a `Retry-After` in seconds. The form with a date is ignored: it depends on this clock.
    private static func delay(_ text: String) -> Duration? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let seconds = Int(text) else {
            return nil
        }
        return .seconds(min(seconds, 86400))
    }

    /// Makes the error of a request that has no complete reply.
    init(requestFailed error: any Error) {
        if Task.isCancelled || error is CancellationError {
            self.init(.cancelled, "the task was cancelled", mayHaveRun: true)
        } else if let error = error as? GatewayError {
            self = error
        } else {
            // Without a connection nothing was sent.
            let isUnsent =
                error is NIOConnectionError || (error as? IOError)?.errnoCode == ECONNREFUSED
                || (error as? HTTPClientError) == .connectTimeout
                || (error as? HTTPClientError) == .getConnectionFromPoolTimeout
            self.init(.network, "the request failed: \(error)", mayHaveRun: !isUnsent, underlying: error)
        }
    }
}
