/// What went wrong with a ``LocalRedis``, and what to do about it.
public struct LocalRedisError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. More may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String

        /// There is no program to run.
        public static let serverNotFound = Code(description: "serverNotFound")
        /// The server ended before it answered; the description holds the end of its log.
        public static let startFailed = Code(description: "startFailed")
        /// The server did not answer in time; the description holds the end of its log.
        public static let startTimedOut = Code(description: "startTimedOut")
        /// The operation needs a running server.
        public static let notRunning = Code(description: "notRunning")
        /// ``LocalRedis/stop()`` has removed the data.
        public static let stopped = Code(description: "stopped")
        /// The server did not obey in time.
        public static let timedOut = Code(description: "timedOut")
    }

    public let code: Code
    /// One sentence for the reader of a failed test, followed by the server's own words where there are any.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    static func serverNotFound(_ name: String?) -> LocalRedisError {
        let install = "install one with \"apt install redis-server\" or \"brew install redis\""
        guard let name else {
            return LocalRedisError(
                .serverNotFound, "There is neither redis-server nor valkey-server on the PATH: \(install).")
        }
        return LocalRedisError(
            .serverNotFound,
            "There is no program \"\(name)\": name one that is on the PATH, give an absolute path, or \(install).")
    }
}
