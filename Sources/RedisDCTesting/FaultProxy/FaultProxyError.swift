/// An error thrown by ``FaultProxy/waitUntil(within:_:)``.
public struct FaultProxyError: Error, Sendable, CustomStringConvertible {
    /// The kind of a failure. Later versions may add codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, for example `timedOut`.
        public let description: String

        /// The counters did not satisfy the condition in time. The error's description lists them.
        public static let timedOut = Code(description: "timedOut")
        /// ``FaultProxy/stop()`` was called.
        public static let stopped = Code(description: "stopped")
    }

    /// The kind of failure.
    public let code: Code
    /// A message that says what happened and what to do.
    public let description: String
}
