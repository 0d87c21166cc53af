// Runs a problem: starts the players, follows the log, kills and restarts one if asked to, and ends the run when every
// player has done its rounds.
import CommandLineTool
import Foundation
import Hiredis
import LittleBook

/// One run of one problem, in processes that this object starts.
struct ProblemRun {
    /// The pause between two reads of the log.
    private static let pollInterval = Duration.milliseconds(2)

    let problem: any Problem
    let run: Run
    /// Determines which player is killed and when; `nil` kills none.
    let seed: UInt64?
    let limit: Duration
    let options: GlobalOptions

    /// Runs the problem to its end or to the time limit, then ends all its processes and deletes
    /// its keys.
    func perform(_ redis: RedisClient) async throws -> Report {
        let roles = problem.cast(run.processes)
        let processes = PlayerProcesses(
            roles.flatMap(\.players), environment: ["REDIS_URL": options.url ?? ""], arguments: arguments)
        var progress = RunProgress(roles: roles, rounds: run.rounds)
        let start = ContinuousClock.now
        let result: Result<String?, any Error>
        do { result = .success(try await follow(processes, &progress, redis)) } catch { result = .failure(error) }
        let duration = ContinuousClock.now - start
        processes.killAll()
        // A task of its own, because this one may be cancelled.
        let cleaning = Task { [run] in try await run.cleanUp(redis) }
        try await cleaning.value
        if Task.isCancelled { throw Failure(.interrupted, "interrupted") }
        let failure = try result.get()
        return Report(
            problem: problem, run: run, seed: seed, log: progress.log, invariants: problem.check(progress.log),
            failure: failure, unfinished: failure == nil ? [] : progress.unfinished, duration: duration)
    }

    private func arguments(_ player: String, _ life: Int) -> [String] {
        // With a death, a short TTL frees early what the dead player held; without one, a long TTL tolerates a slow machine.
        let ttl = seed == nil ? 10 : 3
        return [
            PlayerCommand.firstArgument, problem.name, player, "--run", run.name, "--processes", "\(run.processes)",
            "--rounds", "\(run.rounds)", "--life", "\(life)", "--ttl", "\(ttl)",
        ] + (options.cacert.map { ["--cacert", $0] } ?? [])
    }

    /// Starts the players and follows the log until the run is over.
    ///
    /// - Returns: the reason why the run did not finish; `nil` if it did.
    private func follow(
        _ processes: PlayerProcesses, _ progress: inout RunProgress, _ redis: RedisClient
    ) async throws -> String? {
        let deadline = ContinuousClock.now + limit
        var death = seed.map { PlannedDeath(seed: $0, players: processes.players, rounds: run.rounds) }
        try processes.startAll()
        while true {
            for entry in try await run.read(from: progress.log.entries.count, redis) { progress.add(entry) }
            processes.reapEnded()
            if let failed = processes.failed { return "\(failed.player) failed with status \(failed.status)" }
            if let planned = death, planned.isDue(progress) {
                if planned.delay > .zero { try await Task.sleep(for: planned.delay) }
                // If the planned victim has finished already, another player is killed.
                let order = [planned.victim] + processes.players
                guard let killed = order.first(where: processes.kill9) else {
                    return "all players finished before one was killed"
                }
                try await run.recordDeath(of: killed, nextLife: 2, redis)
                try processes.start(killed)
                death = nil
            } else if death == nil, progress.isOver(isRunning: processes.isRunning) {
                return nil
            } else if !processes.players.contains(where: processes.isRunning) {
                // Their last entries may have been written after the log was read.
                for entry in try await run.read(from: progress.log.entries.count, redis) { progress.add(entry) }
                return progress.isOver(isRunning: processes.isRunning) ? nil : "all players ended too early"
            }
            if ContinuousClock.now > deadline { return "not every process did its rounds within \(limit)" }
            try await Task.sleep(for: Self.pollInterval)
        }
    }
}

/// The player that is killed, and the time of the kill.
struct PlannedDeath {
    let victim: String
    /// The number of log entries of the victim after which it is killed.
    private let entries: Int
    /// A pause between that entry and the kill, so that the kill hits any step.
    let delay: Duration

    init(seed: UInt64, players: [String], rounds: Int) {
        // SplitMix64, so that a seed has the same meaning on every platform.
        func number(_ index: UInt64, below bound: Int) -> Int {
            var z = seed &+ index &* 0x9E37_79B9_7F4A_7C15
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return Int((z ^ (z >> 31)) % UInt64(bound))
        }
        victim = players[number(1, below: players.count)]
        entries = number(2, below: rounds) + 1
        delay = .microseconds(number(3, below: 3000))
    }

    /// Whether the victim has written enough entries, or all rounds are done: a player may write
    /// few entries.
    func isDue(_ progress: RunProgress) -> Bool {
        progress.entryCounts[victim, default: 0] >= entries || progress.roundsAreDone
    }
}

/// The progress of all players, according to the log.
struct RunProgress {
    private let roundEnds: [String: String]
    private let rounds: Int
    private(set) var log: Log
    /// The number of entries of each player, without its deaths and returns.
    private(set) var entryCounts: [String: Int] = [:]
    private var roundsDone: [String: Int] = [:]
    private var lastEntries: [String: Entry] = [:]
    /// The players that were killed and are not back.
    private var absent: Set<String> = []
    /// The players that have not finished a round since a killed one came back.
    private var withoutRoundSinceDeath: Set<String> = []

    init(roles: [Role], rounds: Int) {
        var roundEnds: [String: String] = [:]
        for role in roles { for player in role.players { roundEnds[player] = role.roundEnd } }
        (self.roundEnds, self.rounds) = (roundEnds, rounds)
        log = Log(players: roles.flatMap(\.players))
    }

    mutating func add(_ entry: Entry) {
        log.append(entry)
        lastEntries[entry.player] = entry
        switch entry.event {
        case Entry.killed: absent.insert(entry.player)
        case Entry.back:
            absent.remove(entry.player)
            withoutRoundSinceDeath = Set(roundEnds.keys)
        default:
            entryCounts[entry.player, default: 0] += 1
            if entry.event == roundEnds[entry.player] {
                roundsDone[entry.player, default: 0] += 1
                withoutRoundSinceDeath.remove(entry.player)
            }
        }
    }

    var roundsAreDone: Bool { roundEnds.keys.allSatisfy { roundsDone[$0, default: 0] >= rounds } }

    /// Whether every player has done its rounds and none is absent.
    ///
    /// After a death each player that still runs has to finish one more round, which shows that the
    /// death blocked none.
    func isOver(isRunning: (String) -> Bool) -> Bool {
        roundsAreDone && absent.isEmpty && !withoutRoundSinceDeath.contains(where: isRunning)
    }

    /// A line for each player that has not finished: its rounds, its last entry and the time since.
    var unfinished: [String] {
        let end = log.entries.last?.time ?? 0
        return log.players.compactMap { player in
            let isLate = roundEnds[player] != nil && roundsDone[player, default: 0] < rounds
            guard isLate || absent.contains(player) || withoutRoundSinceDeath.contains(player) else { return nil }
            let done = roundEnds[player] == nil ? "" : "\(roundsDone[player, default: 0]) of \(rounds) rounds, "
            guard let last = lastEntries[player] else { return "\(player): \(done)no entry in the log" }
            let seconds = String(format: "%.1f", Double(end - last.time) / 1e6)
            return "\(player): \(done)last \"\(last.action)\", \(seconds) s before the end"
        }
    }
}
