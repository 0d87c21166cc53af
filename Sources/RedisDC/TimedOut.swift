// The error of an operation that ran out of time.

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
}
