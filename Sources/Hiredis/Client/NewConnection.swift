// A connection on which nobody has sent a command yet.
import NIOCore

/// A new command connection, which no other caller has yet.
package struct NewConnection: Sendable {
    package typealias Completion = @Sendable (Result<RESPValue, RedisError>) -> Void
    /// Runs a script: its keys, its arguments, and the time within which it must be answered.
    package typealias Post = @Sendable (RedisScript, [String], [RedisArgument], Duration, @escaping Completion) -> Void

    private let post: Post
    private let hasEnded: @Sendable () -> Bool

    /// Creates a connection that is not one of a client, for a simulation.
    package init(hasEnded: @escaping @Sendable () -> Bool, post: @escaping Post) {
        (self.hasEnded, self.post) = (hasEnded, post)
    }

    init(_ connection: RedisConnection) {
        /// The scripts whose sources this connection has sent.
        let sent = Locked(Set<ObjectIdentifier>())
        hasEnded = { connection.isClosed }
        post = { script, keys, arguments, timeout, completion in
            // The source first, because the server may not know the script. Later commands follow it on the connection.
            let isFirst = sent.withLock { $0.insert(ObjectIdentifier(script)).inserted }
            let hash = isFirst ? nil : script.hash
            let command = RedisCommand(
                hash == nil ? "EVAL" : "EVALSHA", script: hash ?? script.source, keys: keys, arguments: arguments,
                isHeartbeat: script.isHeartbeat)
            connection.post(command, timeout: TimeAmount(timeout)) { result in
                completion(
                    result.flatMap { reply in
                        guard let message = reply.errorMessage else { return .success(reply) }
                        return .failure(RedisError(serverMessage: message).naming(command.name))
                    })
            }
        }
    }

    /// One that has ended.
    package static var closed: NewConnection {
        NewConnection(hasEnded: { true }) { _, _, _, _, completion in
            completion(.failure(RedisError(.connectionLost, "the connection has ended")))
        }
    }

    /// Whether the connection has ended. What is posted on it fails.
    package var isClosed: Bool { hasEnded() }

    /// Runs a script for a caller on the client's executor, and calls `completion` there.
    package func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration,
        completion: @escaping Completion
    ) { post(script, keys, arguments, timeout, completion) }
}
