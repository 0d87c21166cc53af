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

    /// Returns the error with the reason why Redis could not be reached, if it is one of an operation that ran out of
    /// time.
    ///
    /// - Parameter failure: ``EventLoopRedis/connectionFailure``; `nil` changes nothing.
    func explained(by failure: RedisError?) -> RedisDCError {
        guard let failure, code == .timedOut || code == .notConnected, underlying == nil else { return self }
        var explained = self
        explained.message += "; there is no connection to Redis: \(failure.message)"
        explained.underlying = failure
        return explained
    }
}
