/// What went wrong with a ``FaultProxy``.
public struct FaultProxyError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. More may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String

        /// What was waited for has not happened in time; the description holds the counters.
        public static let timedOut = Code(description: "timedOut")
        /// ``FaultProxy/stop()`` was called.
        public static let stopped = Code(description: "stopped")
    }

    public let code: Code
    public let description: String
}
