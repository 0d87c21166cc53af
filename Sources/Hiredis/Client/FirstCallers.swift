// Who comes before all others on each new command connection.

/// The users of a client that come first on each new command connection.
///
/// A new connection may lead to a server that has lost the last writes, and a later command could overwrite the evidence,
/// or overtake what is done again.
final class FirstCallers: Sendable {
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
