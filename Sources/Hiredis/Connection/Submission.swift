import NIOCore

/// The caller's side of a command: how it receives the reply.
struct Caller: Sendable {
    /// The way in which the reply is delivered.
    enum Answer: Sendable {
        case resume(UnsafeContinuation<Result<RESPValue, RedisError>, Never>)
        /// Called on the event loop, without a suspended task.
        case call(@Sendable (Result<RESPValue, RedisError>) -> Void)
    }

    var answer: Answer
    /// Receives a reply that arrives after the caller was cancelled or timed out.
    var settle: (@Sendable (RESPValue) -> Void)?

    func answer(_ result: Result<RESPValue, RedisError>) {
        switch answer {
        case .resume(let continuation): continuation.resume(returning: result)
        case .call(let completion): completion(result)
        }
    }
}

/// A command or pipeline on its way to the connection; its bytes are encoded separately.
struct Submission: Sendable {
    var id: UInt64
    var caller: Caller
    /// One, or the number of commands in a pipeline.
    var expectedReplies: Int
    /// The number of bytes of the commands.
    var encodedSize: Int
    var timeout: TimeAmount?
    /// The time of silence after which the connection is suspected to be dead while the command is
    /// outstanding, if it is less than the connection's own.
    var silenceLimit: TimeAmount?

    /// The number of bytes that it occupies in the connection's ``SendRoom``.
    var size: Int { encodedSize + expectedReplies * SendRoom.overhead }
}

extension RedisCommand {
    /// The silence limit of a heartbeat: its timeout, but at least a second, for which a server that is
    /// alive may run other scripts. `nil` for other commands.
    func silenceLimit(_ timeout: TimeAmount?) -> TimeAmount? {
        isHeartbeat ? timeout.map { max($0, .seconds(1)) } : nil
    }
}
