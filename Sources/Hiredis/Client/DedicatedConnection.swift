/// A connection that nobody else uses, inside the body of
/// ``Redis/withDedicatedConnection(timeout:_:)``.
public struct DedicatedConnection: Sendable {
    private let carryOut: @Sendable ([RedisCommand]) async throws(RedisError) -> [RESPValue]

    /// Makes a connection that passes its commands to a function. For other implementations of
    /// ``Redis``, such as fakes.
    ///
    /// - Parameter pipeline: carries out the commands and returns a reply for each.
    public init(pipeline: @escaping @Sendable ([RedisCommand]) async throws(RedisError) -> [RESPValue]) {
        carryOut = pipeline
    }

    /// Sends commands in one write and returns a reply for each, with error replies in their
    /// places.
    ///
    /// - Throws: `.timedOut` when the scope's timeout passes, `.cancelled`, `.connectionLost`. The
    ///   connection is then closed, and ``RedisError/mayHaveRun`` says whether the server may have
    ///   run the commands. `.invalidArgument` after the end of the scope.
    public func pipeline(_ commands: [RedisCommand]) async throws(RedisError) -> [RESPValue] {
        try await carryOut(commands)
    }
}
