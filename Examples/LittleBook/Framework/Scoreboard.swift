// The scoreboard: the book's variables that say how things stand, under a mutex.
import Hiredis
import RedisDC

/// Fields that all players see. A player reads them in its turn, waits for them to be as it needs them, and changes them.
///
/// A change and the line of the log that says it are one step in Redis: either both are done or neither. So a player that
/// was killed finds out from the board where it stands, and the others go on from what is there. Whoever is still on the
/// board counts, dead or not, until its next life goes on.
public struct Scoreboard: Sendable {
    private let me: Player
    private let key: String
    private let mutex: DistributedMutex
    /// Where each role waits.
    private let changed: [String: Condition]

    /// Wakes all who wait, in case a former life changed something and died before it could do so.
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

    public func read() async throws -> [String: String] {
        let reply = try await me.redis.send("HGETALL", .string(key)).array ?? []
        let words = reply.compactMap(\.string)
        let pairs = stride(from: 0, to: words.count - 1, by: 2).map { (words[$0], words[$0 + 1]) }
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    /// Sets fields, removes those whose new value is `nil`, and logs what is done by it, all at once. Then wakes those who
    /// may have waited for that.
    ///
    /// - Parameter roles: who they are.
    public func change(
        _ changes: [String: String?], _ event: String, _ number: Int? = nil, _ note: String = "", wakes roles: [String]
    ) async throws {
        try await me.log(event, number, note, changing: key, changes)
        try await wake(roles)
    }

    /// Runs `body` while nobody else has the turn.
    public func turn<Result: Sendable>(
        _ body: @escaping @Sendable (Turn) async throws -> Result
    ) async throws -> Result {
        try await mutex.withLock { lease in try await body(Turn(board: self, lease: lease)) }
    }

    public struct Turn: Sendable {
        let board: Scoreboard
        let lease: Lease

        /// Waits until the board gives an answer. Others have their turns meanwhile.
        public func wait<Answer>(_ answer: ([String: String]) throws -> Answer?) async throws -> Answer {
            while true {
                if let found = try answer(try await board.read()) { return found }
                try await board.changed[board.me.role.name]?.wait(lease)
            }
        }

        /// As ``Scoreboard/change(_:_:_:_:wakes:)``.
        public func change(
            _ changes: [String: String?], _ event: String, _ number: Int? = nil, _ note: String = "",
            wakes roles: [String]
        ) async throws {
            try await board.change(changes, event, number, note, wakes: roles)
        }
    }
}
