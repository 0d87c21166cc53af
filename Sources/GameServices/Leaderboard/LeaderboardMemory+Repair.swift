// After a failover: submits again what Redis has confirmed and lost.
//
// Replication is asynchronous, so a promoted replica may lack the last writes: it has a beginning of the history, and never
// the end without the middle. Each submit has an answer in Redis for a while, so the answers that are missing say exactly
// what is lost, and a submit that is repeated has one effect, whoever repeats it and however often.
import CoordinationBase
import Hiredis

extension LeaderboardMemory {
    /// The number of removals that are sent at once.
    private static let maxRemovals = 64

    /// Compares and repeats the changes, while no other caller has the connection.
    func repair(on connection: NewConnection) async {
        await confirmations.compare { log, needed in
            if log.changes.isEmpty { return true }
            return await repair(Array(log.changes), needed, on: connection)
        }
    }

    /// - Returns: whether everything was compared and repeated.
    private func repair(_ changes: [ConfirmedChange], _ needed: Int, on connection: NewConnection) async -> Bool {
        let callTimeout = min(configuration.callTimeout, .maxWait)
        let scripts = ConnectionScripts(
            redis: redis, connection: connection, clock: clock, timeout: callTimeout / 2,
            end: clock.now() + callTimeout)
        guard let missing = await findMissing(changes, needed, scripts) else { return false }
        var round = Round()
        var removals: [ConfirmedRemoval] = []
        for (position, change) in changes.enumerated().dropFirst(missing.start) {
            if case .removal(let removal) = change.kind {
                removals.append(removal)
                if removals.count < Self.maxRemovals { continue }
            }
            guard change.submit == nil || missing.contains(position) else { continue }
            await repeatRemovals(&removals, scripts, &round)
            if let submit = change.submit { await repeatSubmit(submit, change.number, scripts, &round) }
            if round.isInterrupted { break }
        }
        if !round.isInterrupted { await repeatRemovals(&removals, scripts, &round) }
        confirmations.withLog { $0.update(round.results) }
        instruments.repaired(round.repaired)
        instruments.notRepaired(round.lost)
        return !round.isInterrupted
    }

    private struct Round {
        /// See ``ConfirmedChanges/update(_:)``.
        var results: [UInt64: Duration?] = [:]
        var repaired = 0
        var lost = 0
        var isInterrupted = false
    }

    private func findMissing(
        _ changes: [ConfirmedChange], _ needed: Int, _ scripts: ConnectionScripts
    ) async -> MissingConfirmations? {
        await MissingConfirmations(among: changes, needed: needed) { submits in
            let keys = submits.map { self.keys.key("id:\($0.submit!.id)") }
            let answer = await scripts.run(LeaderboardScripts.answers, keys: keys, arguments: [])
            guard case .reply(let reply) = answer, let missing = reply.array?.map({ ($0.integer ?? 0) - 1 }),
                missing.allSatisfy(submits.indices.contains)
            else { return nil }
            let numbers = Set(missing)
            return submits.indices.map { numbers.contains($0) }
        }
    }

    private func repeatSubmit(
        _ submit: ConfirmedSubmit, _ number: UInt64, _ scripts: ConnectionScripts, _ round: inout Round
    ) async {
        let began = clock.now()
        guard began < submit.repeatableUntil else {
            // The answer may have expired, and then the score would count twice.
            round.results[number] = .some(nil)
            return
        }
        // It counts in its periods, whatever the time is now.
        let request = SubmitRequest(submit, keys: keys, configuration: configuration, isAnyTime: true)
        switch await scripts.run(LeaderboardScripts.submit, keys: request.keys, arguments: request.arguments) {
        case .interrupted: round.isInterrupted = true
        case .reply(let reply) where reply.array?.first?.string == "ok":
            round.results[number] = began + submit.answerLifetime
            round.repaired += 1
        case .reply(let reply) where reply.array?.first?.string == "again": break
        case .reply, .refused:
            round.results[number] = .some(nil)
            round.lost += 1
        }
    }

    /// Repeats removals that follow one another.
    private func repeatRemovals(
        _ removals: inout [ConfirmedRemoval], _ scripts: ConnectionScripts, _ round: inout Round
    ) async {
        if removals.isEmpty { return }
        let isInterrupted = await withTaskGroup(of: Bool.self) { group in
            for removal in removals {
                let keys = removal.entries.flatMap { self.keys.window($0.period) }
                let stamps = removal.entries.map { RedisArgument.string($0.stamp) }
                group.addTask {
                    let answer = await scripts.run(
                        LeaderboardScripts.removeAgain, keys: keys, arguments: [.string(removal.name)] + stamps)
                    if case .interrupted = answer { return true }
                    return false
                }
            }
            return await group.contains(true)
        }
        round.isInterrupted = round.isInterrupted || isInterrupted
        removals = []
    }
}
