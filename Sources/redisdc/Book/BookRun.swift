// Runs a problem: starts the players, follows the log, kills and restarts one if asked to, and ends the run when all have
// done their rounds.
import Foundation
import Hiredis
import LittleBook

struct BookRun {
    /// How often the log is looked at.
    private static let interval = Duration.milliseconds(2)

    let problem: any Problem
    let run: Run
    /// Says who is killed when; `nil` kills nobody.
    let seed: UInt64?
    let limit: Duration
    let options: GlobalOptions

    func perform(_ redis: RedisClient) async throws -> BookReport {
        let roles = problem.cast(run.processes)
        let cast = BookCast(
            roles.flatMap(\.players), environment: ["REDIS_URL": options.url ?? GlobalOptions.environmentURL ?? ""],
            arguments: arguments)
        var progress = BookProgress(roles: roles, rounds: run.rounds)
        let start = ContinuousClock.now
        let result: Result<String?, any Error>
        do { result = .success(try await follow(cast, &progress, redis)) } catch { result = .failure(error) }
        let duration = ContinuousClock.now - start
        cast.killAll()
        // Not in this task, which may be cancelled.
        let cleaning = Task { [run] in try await run.cleanUp(redis) }
        try await cleaning.value
        if Task.isCancelled { throw Failure(.interrupted, "interrupted") }
        let failure = try result.get()
        return BookReport(
            problem: problem, run: run, seed: seed, log: progress.log, invariants: problem.check(progress.log),
            failure: failure, unfinished: failure == nil ? [] : progress.unfinished, duration: duration)
    }

    private func arguments(_ player: String, _ life: Int) -> [String] {
        // A dead one's session should be over soon; otherwise a slow machine should not matter.
        let ttl = seed == nil ? 10 : 3
        return [
            "book-player", problem.name, player, "--run", run.name, "--processes", "\(run.processes)", "--rounds",
            "\(run.rounds)", "--life", "\(life)", "--ttl", "\(ttl)",
        ] + (options.cacert.map { ["--cacert", $0] } ?? [])
    }

    /// - Returns: why it did not come to a good end; `nil` if it did.
    private func follow(
        _ cast: BookCast, _ progress: inout BookProgress, _ redis: RedisClient
    ) async throws -> String? {
        let deadline = ContinuousClock.now + limit
        var death = seed.map { BookDeath(seed: $0, players: cast.players, rounds: run.rounds) }
        try cast.startAll()
        while true {
            for entry in try await run.read(from: progress.log.entries.count, redis) { progress.add(entry) }
            cast.look()
            if let failed = cast.failed { return "\(failed.player) failed with status \(failed.status)" }
            if let planned = death, planned.isDue(progress) {
                if planned.delay > .zero { try await Task.sleep(for: planned.delay) }
                // Who was to be killed may have gone home; then it is someone else.
                let order = [planned.victim] + cast.players
                guard let killed = order.first(where: cast.kill9) else { return "all went home before one was killed" }
                try await run.bury(killed, nextLife: 2, redis)
                try cast.start(killed)
                death = nil
            } else if death == nil, progress.isOver(isPlaying: cast.isPlaying) {
                return nil
            } else if !cast.players.contains(where: cast.isPlaying) {
                // What they said last may have come after it was read.
                for entry in try await run.read(from: progress.log.entries.count, redis) { progress.add(entry) }
                return progress.isOver(isPlaying: cast.isPlaying) ? nil : "all went home too early"
            }
            if ContinuousClock.now > deadline { return "not everyone did their rounds within \(limit)" }
            try await Task.sleep(for: Self.interval)
        }
    }
}

/// Who is to be killed, and when.
struct BookDeath {
    let victim: String
    /// After it has said so much, and a little later.
    private let words: Int
    let delay: Duration

    init(seed: UInt64, players: [String], rounds: Int) {
        // SplitMix64, so that a seed says the same everywhere.
        func number(_ index: UInt64, below bound: Int) -> Int {
            var z = seed &+ index &* 0x9E37_79B9_7F4A_7C15
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return Int((z ^ (z >> 31)) % UInt64(bound))
        }
        victim = players[number(1, below: players.count)]
        words = number(2, below: rounds) + 1
        delay = .microseconds(number(3, below: 3000))
    }

    /// A player that says little is killed when all the others are done.
    func isDue(_ progress: BookProgress) -> Bool {
        progress.words[victim, default: 0] >= words || progress.roundsAreDone
    }
}

/// How far the players are, going by the log.
struct BookProgress {
    private let roundEnds: [String: String]
    private let rounds: Int
    private(set) var log: Log
    /// How much each has said.
    private(set) var words: [String: Int] = [:]
    private var ended: [String: Int] = [:]
    private var last: [String: Entry] = [:]
    /// Who was killed and is not back.
    private var absent: Set<String> = []
    /// Who must show that life goes on after a death.
    private var owing: Set<String> = []

    init(roles: [Role], rounds: Int) {
        var roundEnds: [String: String] = [:]
        for role in roles { for player in role.players { roundEnds[player] = role.roundEnd } }
        (self.roundEnds, self.rounds) = (roundEnds, rounds)
        log = Log(players: roles.flatMap(\.players))
    }

    mutating func add(_ entry: Entry) {
        log.append(entry)
        last[entry.player] = entry
        switch entry.event {
        case Entry.killed: absent.insert(entry.player)
        case Entry.back:
            absent.remove(entry.player)
            owing = Set(roundEnds.keys)
        default:
            words[entry.player, default: 0] += 1
            if entry.event == roundEnds[entry.player] {
                ended[entry.player, default: 0] += 1
                owing.remove(entry.player)
            }
        }
    }

    var roundsAreDone: Bool { roundEnds.keys.allSatisfy { ended[$0, default: 0] >= rounds } }

    /// Whether all have done their rounds and everyone is there; after a death everyone who still plays does one more.
    func isOver(isPlaying: (String) -> Bool) -> Bool {
        roundsAreDone && absent.isEmpty && !owing.contains(where: isPlaying)
    }

    /// Who has not done their rounds, and where they stand.
    var unfinished: [String] {
        let end = log.entries.last?.time ?? 0
        return log.players.compactMap { player in
            let isLate = roundEnds[player] != nil && ended[player, default: 0] < rounds
            guard isLate || absent.contains(player) || owing.contains(player) else { return nil }
            let done = roundEnds[player] == nil ? "" : "\(ended[player, default: 0]) of \(rounds) rounds, "
            guard let last = last[player] else { return "\(player): \(done)has never said anything" }
            let seconds = String(format: "%.1f", Double(end - last.time) / 1e6)
            return "\(player): \(done)last \"\(last.action)\", \(seconds) s before the end"
        }
    }
}
