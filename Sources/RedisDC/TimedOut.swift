// The error of an operation that ran out of time.
import Hiredis

extension RedisDCError {
    /// An error that says which action ran out of time, and after how long.
    ///
    /// - Parameters:
    ///   - action: such as `pass turnstile "start"`.
    ///   - timeout: what the caller allowed; 0 or `nil` for a single attempt.
    static func timedOut(_ action: String, after timeout: Duration?) -> RedisDCError {
        guard let timeout, timeout > .zero else { return RedisDCError(.timedOut, "cannot \(action) without waiting") }
        return RedisDCError(.timedOut, "cannot \(action): timed out after \(timeout)")
    }

    /// - Parameter failure: ``EventLoopRedis/connectionFailure``; `nil` returns `nil`.
    static func noConnection(_ failure: RedisError?) -> RedisDCError? {
        failure.map {
            RedisDCError(.notConnected, "there is no connection to Redis: \($0.message)", underlying: $0)
        }
    }

    /// Returns the error with the reason why nothing could be sent, if it is one of an operation that ran out of time.
    ///
    /// - Parameter reason: ``Engine/unreachable``; `nil` changes nothing.
    func explained(by reason: RedisDCError?) -> RedisDCError {
        guard let reason, code == .timedOut || code == .notConnected, underlying == nil else { return self }
        var explained = self
        explained.message += "; \(reason.message)"
        explained.underlying = reason.underlying
        return explained
    }
}
