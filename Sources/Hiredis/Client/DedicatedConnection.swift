/// A connection that nobody else uses, inside the body of ``Redis/withDedicatedConnection(timeout:_:)``.
public struct DedicatedConnection: Sendable {
    private let carryOut: @Sendable ([RedisCommand]) async throws(RedisError) -> [RESPValue]

    /// Makes a connection that carries out commands by calling a function. For implementations of ``Redis`` in tests.
    ///
    /// - Parameter pipeline: carries out the commands and returns a reply for each.
    public init(pipeline: @escaping @Sendable ([RedisCommand]) async throws(RedisError) -> [RESPValue]) {
        carryOut = pipeline
    }

    /// Sends commands in one write and returns a reply for each, error replies in their places.
    ///
    /// - Throws: `.timedOut` when the scope's timeout passes, `.cancelled`, `.connectionLost`; with ``RedisError/mayHaveRun``
    ///   the server may have run the commands. The connection is then closed. `.invalidArgument` after the scope's end.
    public func pipeline(_ commands: [RedisCommand]) async throws(RedisError) -> [RESPValue] {
        try await carryOut(commands)
    }
}
