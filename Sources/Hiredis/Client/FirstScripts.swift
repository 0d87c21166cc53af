// What is sent on each new command connection before all other commands.
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

/// The users of a client that send something first. A new connection may lead to a server that has lost the last writes,
/// and a later command could overwrite the evidence, or overtake what is done again.
final class FirstScripts: Sendable {
    typealias Body = @Sendable (NewConnection) async -> Void

    private struct Source {
        /// The slot of the scripts' keys; `nil` for all slots.
        var slot: Int?
        var body: Body
    }

    private struct State {
        var lastID = 0
        var sources: [Int: Source] = [:]
    }

    private let state = Locked(State())

    /// - Returns: an id for ``remove(_:)``.
    func add(slot: Int?, _ body: @escaping Body) -> Int {
        state.withLock { state in
            state.lastID += 1
            state.sources[state.lastID] = Source(slot: slot, body: body)
            return state.lastID
        }
    }

    func remove(_ id: Int) { state.withLock { $0.sources[id] = nil } }

    /// Lets the users send, at the same time, on a connection that no other caller has yet. Returns when all have done so.
    ///
    /// - Parameter isServed: whether the server of the connection serves a slot.
    func send(on connection: RedisConnection, where isServed: @Sendable (Int) -> Bool) async {
        let sources = state.withLock { $0.sources }.values.filter { $0.slot.map(isServed) ?? true }
        await withDiscardingTaskGroup { group in
            for source in sources { group.addTask { await source.body(NewConnection(connection)) } }
        }
    }
}
