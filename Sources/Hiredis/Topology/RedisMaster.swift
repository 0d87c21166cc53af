/// One of a client's masters, for commands that concern a single server: `SCAN`, `INFO`, `CONFIG`.
///
/// See ``RedisClient/masters()``.
public struct RedisMaster: Sendable {
    /// The address of the server. With sentinels it is that of the first sentinel: the commands go to the
    /// master that they name.
    public let endpoint: RedisConfiguration.Endpoint
    private let node: Node

    init(_ node: Node) {
        endpoint = node.configuration.endpoint
        self.node = node
    }

    /// Sends one command to this server and returns its reply.
    ///
    /// - Parameter timeout: from now, including the wait for a connection; `nil` is the configured
    ///   `commandTimeout`.
    /// - Throws: what ``Redis/send(_:timeout:settle:)`` throws. A redirect to another server of a cluster
    ///   is an error.
    public func send(_ command: RedisCommand, timeout: Duration? = nil) async throws(RedisError) -> RESPValue {
        try await node.send(command, timeout: timeout, settle: nil)
    }

    /// Sends commands to this server in one write and returns a reply for each, with error replies in
    /// their places.
    ///
    /// - Throws: what ``Redis/pipeline(_:timeout:)`` throws.
    public func pipeline(_ commands: [RedisCommand], timeout: Duration? = nil) async throws(RedisError) -> [RESPValue] {
        try await node.pipeline(commands, timeout: timeout)
    }
}

extension RedisClient {
    /// Returns the masters that serve slots of the cluster now, in no particular order; with one server
    /// or with sentinels, a single one.
    ///
    /// - Throws: `.timedOut` if no server of the cluster has named them within `commandTimeout`,
    ///   `.cancelled`, `.clientStopped`.
    public func masters() async throws(RedisError) -> [RedisMaster] {
        try await servers.masters()
    }
}
