public import Hiredis
public import RedisDC

/// A process that plays a role: its identity, the coordination primitives, and the log.
public struct Player: Sendable {
    /// The name, for instance `reader-2`.
    public let name: String
    /// The number within the role: 2 for the second reader.
    public let index: Int
    /// The number of players of each role.
    public let counts: [String: Int]
    /// Creates the primitives, in a namespace of the run.
    public let coordinator: Coordinator
    /// The client, for other shared data. Use keys from ``key(_:)``.
    public let redis: any Redis
    let role: Role
    private let run: Run
    private let life: Int

    // MARK: The log

    /// Writes an entry and returns when it is in the log.
    ///
    /// So an entry that is written while a resource is held precedes the entries of the next
    /// holder.
    public func log(_ event: String, _ number: Int? = nil, _ note: String = "") async throws {
        try await log(event, number, note, changing: nil, [:])
    }

    /// Writes an entry and changes a scoreboard, in one step.
    func log(
        _ event: String, _ number: Int?, _ note: String, changing scoreboard: String?, _ changes: [String: String?]
    ) async throws {
        let action = [event, number.map { "\($0)" } ?? "", note].filter { !$0.isEmpty }.joined(separator: " ")
        try await run.write(action, by: name, life: life, redis, changing: scoreboard, changes)
    }

    /// Writes an entry and moves players to places, in one step: a process that is killed has done
    /// both or neither.
    ///
    /// - Parameter moving: the new place of each player; an empty string removes the player.
    public func log(
        _ event: String, _ number: Int? = nil, _ note: String = "", moving: [String: String]
    ) async throws {
        let changes = moving.mapValues { $0.isEmpty ? nil : $0 }
        try await log(event, number, note, changing: run.key("places"), changes)
    }

    /// Writes an entry and moves this player to a place, in one step; an empty string removes the
    /// player.
    public func log(_ event: String, _ number: Int? = nil, to place: String) async throws {
        try await log(event, number, moving: [name: place])
    }

    /// Returns the place of each player. A killed player keeps its place, and its next life may
    /// continue from there.
    public func places() async throws -> [String: String] { try await run.places(redis) }

    /// Writes an entry, unless this player has written it in a former life.
    public func logOnce(_ event: String, _ number: Int) async throws {
        let isLogged = try await ownEntries().contains { $0.event == event && $0.number == number }
        if !isLogged { try await log(event, number) }
    }

    /// Returns the entries of this player, including those of its former lives.
    public func ownEntries() async throws -> [Entry] {
        // A first life has no entries to find.
        life == 1 ? [] : try await run.read(redis).filter { $0.player == name }
    }

    // MARK: Rounds

    /// Returns the rounds of a player that ends when it has done them. After a death, these are the
    /// remaining rounds.
    public func rounds() async throws -> Range<Int> {
        let next = try await nextRound()
        return next..<max(next, run.rounds + 1)
    }

    /// Returns the rounds of a player that others depend on: it continues until the run is over.
    public func roundsUntilAllAreDone() async throws -> PartialRangeFrom<Int> { try await nextRound()... }

    private func nextRound() async throws -> Int { try await ownEntries().count { $0.event == role.roundEnd } + 1 }

    // MARK: Work and data

    /// Pauses for up to 1 ms, so that a wrong solution has a chance to fail.
    public func work() async throws { try await Task.sleep(for: .microseconds(Int.random(in: 0...1000))) }

    /// Returns a key for data that the run's players share. It is deleted with the run.
    public func key(_ what: String) -> String { run.key("data:\(what)") }

    // MARK: Life

    /// Plays a role to its end.
    ///
    /// The player holds a mutex of its name meanwhile. After a death, its next life acquires this
    /// mutex when the former session has expired, which has also ended all that the dead process
    /// held or waited for. So no player exists twice.
    ///
    /// - Parameters:
    ///   - problem: the problem.
    ///   - name: the name of the player.
    ///   - life: 1, plus 1 for each death.
    ///   - run: the run.
    ///   - coordinator: a coordinator in the namespace of the run.
    ///   - redis: the client.
    /// - Throws: `.invalidArgument` if the problem has no such player, and what the role throws.
    public static func play(
        _ problem: any Problem, as name: String, life: Int, in run: Run, coordinator: Coordinator, redis: any Redis
    ) async throws {
        let cast = problem.cast(run.processes)
        guard let role = cast.first(where: { $0.players.contains(name) }),
            let index = role.players.firstIndex(of: name)
        else { throw RedisDCError(.invalidArgument, "the problem \(problem.name) has no player \"\(name)\"") }
        let player = Player(
            name: name, index: index + 1, counts: Dictionary(uniqueKeysWithValues: cast.map { ($0.name, $0.count) }),
            coordinator: coordinator, redis: redis, role: role, run: run, life: life)
        try await coordinator.mutex("player \(name)").withLock { _ in
            if life > 1 { try await player.log(Entry.back) }
            try await role.play(player)
        }
    }
}
