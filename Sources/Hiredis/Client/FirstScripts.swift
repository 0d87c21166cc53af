// Scripts that are sent on each new command connection before all other commands.
import NIOCore

/// A script that is sent on a new command connection before all commands of other callers.
package struct FirstScript: Sendable {
    package var script: RedisScript
    package var keys: [String]
    package var arguments: [RedisArgument]
    package var timeout: Duration
    /// Receives the reply on the client's executor.
    package var completion: @Sendable (Result<RESPValue, RedisError>) -> Void

    package init(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        (self.script, self.keys, self.arguments) = (script, keys, arguments)
        (self.timeout, self.completion) = (timeout, completion)
    }
}

/// The sources of the scripts to send first. A new connection may lead to a server that has lost the last writes, and a
/// later command could overwrite the evidence.
final class FirstScripts: Sendable {
    typealias Make = @Sendable () async -> [FirstScript]

    private struct Source {
        /// The slot of the scripts' keys; `nil` for all slots.
        var slot: Int?
        var make: Make
    }

    private struct State {
        var lastID = 0
        var sources: [Int: Source] = [:]
    }

    private let state = Locked(State())

    /// - Returns: an id for ``remove(_:)``.
    func add(slot: Int?, _ make: @escaping Make) -> Int {
        state.withLock { state in
            state.lastID += 1
            state.sources[state.lastID] = Source(slot: slot, make: make)
            return state.lastID
        }
    }

    func remove(_ id: Int) { state.withLock { $0.sources[id] = nil } }

    /// Asks for the scripts, and sends them on a connection that no other caller has yet.
    ///
    /// - Parameter isServed: whether the server of the connection serves a slot.
    func send(on connection: RedisConnection, where isServed: @Sendable (Int) -> Bool) async {
        let sources = state.withLock { $0.sources }.values.filter { $0.slot.map(isServed) ?? true }
        for source in sources {
            let scripts = await source.make()
            // On the event loop: the scripts are sent when this function returns, and the completions run there even if
            // the connection has ended in the meantime.
            try? await connection.eventLoop.submit {
                for first in scripts { Self.send(first, on: connection) }
            }.get()
        }
    }

    private static func send(_ first: FirstScript, on connection: RedisConnection) {
        // The source, because the server may not know the script.
        let command = RedisCommand(
            "EVAL", script: first.script.source, keys: first.keys, arguments: first.arguments,
            isHeartbeat: first.script.isHeartbeat)
        connection.post(command, timeout: TimeAmount(first.timeout)) { result in
            first.completion(
                result.flatMap { reply in
                    guard let message = reply.errorMessage else { return .success(reply) }
                    return .failure(RedisError(serverMessage: message).naming("EVAL"))
                })
        }
    }
}
