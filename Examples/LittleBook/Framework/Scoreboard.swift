import Hiredis
import RedisDC

/// Variables that the players of a run share under a mutex, as fields in Redis.
///
/// A player reads the fields in its turn, waits until they satisfy its condition, and changes them.
/// A change and its log entry are one step in Redis: both are done or neither. So the next life of
/// a killed player finds its state on the scoreboard, and the others continue from there. A player
/// on the scoreboard counts, dead or alive, until its next life continues.
public struct Scoreboard: Sendable {
    private let me: Player
    private let key: String
    private let mutex: DistributedMutex
    /// The condition that each role waits for.
    private let changed: [String: Condition]

    /// Opens a scoreboard and wakes all waiters, because a former life may have died between a
    /// change and its notification.
    public init(_ me: Player, _ name: String) async throws {
        (self.me, key) = (me, me.key(name))
        let mutex = try me.coordinator.mutex(name)
        self.mutex = mutex
        changed = try me.counts.reduce(into: [:]) { $0[$1.key] = try mutex.condition($1.key) }
        try await wake(Array(me.counts.keys))
    }

    private func wake(_ roles: [String]) async throws {
        for role in roles { try await changed[role]?.notifyAll() }
    }

    /// Returns all fields.
    public func read() async throws -> [String: String] {
        let reply = try await me.redis.send("HGETALL", .string(key)).array ?? []
        let words = reply.compactMap(\.string)
        let pairs = stride(from: 0, to: words.count - 1, by: 2).map { (words[$0], words[$0 + 1]) }
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    /// Changes fields and writes an entry in one step, then wakes waiters.
    ///
    /// - Parameters:
    ///   - changes: the new values; `nil` removes a field.
    ///   - event: the event of the entry.
    ///   - number: the number of the entry.
    ///   - note: the note of the entry.
    ///   - roles: the roles whose waiters are woken.
    public func change(
        _ changes: [String: String?], _ event: String, _ number: Int? = nil, _ note: String = "", wakes roles: [String]
    ) async throws {
        try await me.log(event, number, note, changing: key, changes)
        try await wake(roles)
    }

    /// Runs `body` while no other player has a turn.
    public func turn<Result: Sendable>(
        _ body: @escaping @Sendable (Turn) async throws -> Result
    ) async throws -> Result {
        try await mutex.withLock { lease in try await body(Turn(board: self, lease: lease)) }
    }

    /// A turn of a player, during which it holds the scoreboard's mutex.
    public struct Turn: Sendable {
        let board: Scoreboard
        let lease: Lease

        /// Waits until `answer` returns a value for the fields, and returns that value. Others have
        /// their turns meanwhile.
        public func wait<Answer>(_ answer: ([String: String]) throws -> Answer?) async throws -> Answer {
            while true {
                if let found = try answer(try await board.read()) { return found }
                try await board.changed[board.me.role.name]?.wait(lease)
            }
        }

        /// Changes fields and writes an entry, as ``Scoreboard/change(_:_:_:_:wakes:)`` does.
        public func change(
            _ changes: [String: String?], _ event: String, _ number: Int? = nil, _ note: String = "",
            wakes roles: [String]
        ) async throws {
            try await board.change(changes, event, number, note, wakes: roles)
        }
    }
}
