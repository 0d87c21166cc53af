// A connection on which nobody has sent a command yet.
import NIOCore

/// A new command connection, which no other caller has yet.
package struct NewConnection: Sendable {
    package typealias Completion = @Sendable (Result<RESPValue, RedisError>) -> Void

    private let connection: RedisConnection?
    /// The scripts whose sources this connection has sent.
    private let sent = Locked(Set<ObjectIdentifier>())

    init(_ connection: RedisConnection) { self.connection = connection }

    private init() { connection = nil }

    /// One that has ended.
    package static var closed: NewConnection { NewConnection() }

    /// Whether the connection has ended. What is posted on it fails.
    package var isClosed: Bool { connection?.isClosed ?? true }

    /// Runs a script for a caller on the client's executor, and calls `completion` there.
    package func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration,
        completion: @escaping Completion
    ) {
        guard let connection else {
            return completion(.failure(RedisError(.connectionLost, "the connection has ended")))
        }
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
