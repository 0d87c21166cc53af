// What a player has in hand: who it is, the primitives, and the log.
public import Hiredis
public import RedisDC

/// A process that plays a role.
public struct Player: Sendable {
    /// `reader-2`
    public let name: String
    /// 2, the second reader.
    public let index: Int
    /// How many play each role.
    public let counts: [String: Int]
    /// What makes the primitives. Their names are the run's own.
    public let coordinator: Coordinator
    /// For what else is shared; its keys are from ``key(_:)``.
    public let redis: any Redis
    let role: Role
    private let run: Run
    private let life: Int

    // MARK: The log

    /// Says what it does. Returns when it is in the log, so that what is said while something is held is said in time.
    public func log(_ event: String, _ number: Int? = nil, _ note: String = "") async throws {
        try await log(event, number, note, changing: nil, [:])
    }

    /// Says it and changes a scoreboard, both in one step.
    func log(
        _ event: String, _ number: Int?, _ note: String, changing scoreboard: String?, _ changes: [String: String?]
    ) async throws {
        let action = [event, number.map { "\($0)" } ?? "", note].filter { !$0.isEmpty }.joined(separator: " ")
        try await run.write(action, by: name, life: life, redis, changing: scoreboard, changes)
    }

    /// Says it, and who is where from now on; nowhere with "". It is in the log, and they are there, in one step: a process
    /// that is killed has done both or neither.
    public func log(
        _ event: String, _ number: Int? = nil, _ note: String = "", moving: [String: String]
    ) async throws {
        let changes = moving.mapValues { $0.isEmpty ? nil : $0 }
        try await log(event, number, note, changing: run.key("places"), changes)
    }

    /// The same, when it moves only itself.
    public func log(_ event: String, _ number: Int? = nil, to place: String) async throws {
        try await log(event, number, moving: [name: place])
    }

    /// Who is where. Who is killed stays there, and when it is back it may go on from there.
    public func places() async throws -> [String: String] { try await run.places(redis) }

    /// Says what it has not said before, in a former life.
    public func logOnce(_ event: String, _ number: Int) async throws {
        let isSaid = try await said().contains { $0.event == event && $0.number == number }
        if !isSaid { try await log(event, number) }
    }

    /// What it has said so far, in its former lives too.
    public func said() async throws -> [Entry] {
        // In the first life there is nothing to find.
        life == 1 ? [] : try await run.read(redis).filter { $0.player == name }
    }

    // MARK: Rounds

    /// The rounds of a player that goes home when it has done them. After a death: those that are left.
    public func rounds() async throws -> Range<Int> {
        let next = try await nextRound()
        return next..<max(next, run.rounds + 1)
    }

    /// The rounds of a player that others count on: it goes on until all have done theirs and the run is over.
    public func roundsUntilAllAreDone() async throws -> PartialRangeFrom<Int> { try await nextRound()... }

    private func nextRound() async throws -> Int { try await said().count { $0.event == role.roundEnd } + 1 }

    // MARK: Else

    /// Takes a moment, so that the others have a chance to be wrong.
    public func work() async throws { try await Task.sleep(for: .microseconds(Int.random(in: 0...1000))) }

    /// A key of its own for this run, for data that are shared. It is deleted with the run.
    public func key(_ what: String) -> String { run.key("data:\(what)") }

    // MARK: Life

    /// Plays a role to its end.
    ///
    /// It holds a mutex of its name all the while. After a death the next life gets it when the former session is over, and
    /// with it is over whatever the dead one held and waited for: nobody is there twice.
    ///
    /// - Parameter life: 1, and one more for each death.
    public static func play(
        _ problem: any Problem, as name: String, life: Int, in run: Run, coordinator: Coordinator, redis: any Redis
    ) async throws {
        let cast = problem.cast(run.processes)
        guard let role = cast.first(where: { $0.players.contains(name) }),
            let index = role.players.firstIndex(of: name)
        else { throw RedisDCError(.invalidArgument, "nobody is called \"\(name)\" in \(problem.name)") }
        let player = Player(
            name: name, index: index + 1, counts: Dictionary(uniqueKeysWithValues: cast.map { ($0.name, $0.count) }),
            coordinator: coordinator, redis: redis, role: role, run: run, life: life)
        try await coordinator.mutex("player \(name)").withLock { _ in
            if life > 1 { try await player.log(Entry.back) }
            try await role.play(player)
        }
    }
}
