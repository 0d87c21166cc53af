/// An error thrown by ``LocalRedis``, ``LocalSentinel`` and ``LocalCluster``.
public struct LocalRedisError: Error, Sendable, CustomStringConvertible {
    /// The kind of a failure. Later versions may add codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, for example `startFailed`.
        public let description: String

        /// The server program does not exist.
        public static let serverNotFound = Code(description: "serverNotFound")
        /// The server exited before it replied, in which case the error's description contains the
        /// end of the server's log, or found no free port.
        public static let startFailed = Code(description: "startFailed")
        /// The server did not reply in time. The error's description contains the end of its log.
        public static let startTimedOut = Code(description: "startTimedOut")
        /// The operation needs a running server.
        public static let notRunning = Code(description: "notRunning")
        /// ``LocalRedis/stop()`` has removed the server's data.
        public static let stopped = Code(description: "stopped")
        /// The server did not shut down in time, in which case the error's description contains the
        /// end of its log, or the servers did not reach the state that a call waits for.
        public static let timedOut = Code(description: "timedOut")
        /// The servers do not agree about their roles now, or no server serves a slot.
        public static let notHealthy = Code(description: "notHealthy")
    }

    /// The kind of failure.
    public let code: Code
    /// A message that says what happened and what to do, followed by the end of the server's log,
    /// if any.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    static let noFreePorts = LocalRedisError(
        .startFailed,
        "cannot start a server: 20 ports between 20000 and 32699 are in use; stop processes that use them")

    static func serverNotFound(_ name: String?) -> LocalRedisError {
        let install = "install one with \"apt install redis-server\" or \"brew install redis\""
        guard let name else {
            return LocalRedisError(
                .serverNotFound,
                "cannot start a server: neither redis-server nor valkey-server is on the PATH; \(install)")
        }
        return LocalRedisError(
            .serverNotFound,
            "cannot start a server: \"\(name)\" is not a program on the PATH; pass another name or an absolute path, "
                + "or \(install)")
    }
}
