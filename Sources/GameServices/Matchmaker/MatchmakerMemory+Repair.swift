// After a failover: does again what Redis has told this node about tickets, and lost.
//
// Several nodes do this at the same time, in any order, and may be interrupted by the next failover. So every step has one
// effect: a ticket that has a record is not enqueued again, and an outcome is restored only where no other one is.
import CoordinationBase
import Hiredis

extension MatchmakerMemory {
    private struct Round {
        var scripts: ConnectionScripts
        var isInterrupted = false
        var repaired = 0
        /// The changes that cannot be repeated.
        var lost: Set<UInt64> = []
        /// What the repair has brought about.
        var added: [ConfirmedTicket.Kind] = []
    }

    /// Compares and repeats, while no other caller has the connection.
    func repair(on connection: NewConnection) async {
        await confirmations.compare { log, needed in
            if log.changes.isEmpty { return true }
            return await repair(Array(log.changes), needed, on: connection)
        }
    }

    /// - Returns: whether everything was compared, and repeated in the order of the confirmations.
    private func repair(_ changes: [ConfirmedTicket], _ needed: Int, on connection: NewConnection) async -> Bool {
        let callTimeout = min(requests.configuration.callTimeout, .maxWait)
        var round = Round(
            scripts: ConnectionScripts(
                redis: redis, connection: connection, clock: clock, timeout: callTimeout / 2,
                end: clock.now() + callTimeout))
        guard let missing = await findMissing(changes, needed, round.scripts) else { return false }
        // Outcomes first, so that none of their tickets is found by one that is enqueued again.
        for change in changes where missing.contains(change.number) && !round.isInterrupted {
            if let outcome = change.outcome { await restore(outcome, change.number, &round) }
        }
        for (number, ticket) in ConfirmedTickets.waiting(among: changes)
        where missing.contains(number) && !round.isInterrupted {
            await enqueue(ticket, number, &round)
        }
        let (lost, added, end) = (round.lost, round.added, clock.now())
        confirmations.withLog { log in
            log.remove(lost)
            for kind in added { log.append(kind, at: end) }
        }
        instruments.repaired(round.repaired)
        if !lost.isEmpty { reportLoss(lost.count) }
        return missing.isEmpty
    }

    /// Returns the numbers of the changes that Redis lacks; `nil` if it does not answer.
    private func findMissing(
        _ changes: [ConfirmedTicket], _ needed: Int, _ scripts: ConnectionScripts
    ) async -> Set<UInt64>? {
        let missing = await MissingConfirmations(among: changes, needed: needed) { part in
            let tickets = part.flatMap(\.tickets)
            let answer = await scripts.run(
                MatchmakerScripts.known, keys: requests.keys,
                arguments: requests.arguments(tickets.map { .string($0) }))
            guard case .reply(let reply) = answer, let states = reply.array?.map(\.integer),
                states.count == tickets.count
            else { return nil }
            var at = 0
            return part.map { change in
                let own = states[at..<at + change.tickets.count]
                at += own.count
                // Waiting tickets are there if they have records, and outcomes if all of their tickets have ended.
                return !own.allSatisfy { $0 == 2 || $0 == 1 && change.waiting != nil }
            }
        }
        return missing.map { Set($0.positions.map { changes[$0].number }) }
    }

    private func restore(_ outcome: ConfirmedOutcome, _ number: UInt64, _ round: inout Round) async {
        let answer = await round.scripts.run(
            MatchmakerScripts.restore, keys: requests.keys,
            arguments: requests.arguments(MatchRequests.restore(outcome)))
        switch answer {
        case .interrupted: round.isInterrupted = true
        case .reply(let reply) where reply.array?.first?.integer != nil:
            round.repaired += reply.array?.first?.integer ?? 0
        case .reply, .refused: round.lost.insert(number)
        }
    }

    private func enqueue(_ ticket: EnqueuedTicket, _ number: UInt64, _ round: inout Round) async {
        let now = clock.now()
        let timeout = ticket.end.map { max(.milliseconds(1), $0 - now) }
        let answer = await round.scripts.run(
            MatchmakerScripts.enqueue, keys: requests.keys,
            arguments: requests.arguments(MatchRequests.enqueue(ticket, timeout: timeout)))
        guard case .reply(let reply) = answer else {
            if case .interrupted = answer { round.isInterrupted = true } else { round.lost.insert(number) }
            return
        }
        let parts = reply.array ?? []
        switch parts.first?.string {
        case "conflict", "used", "rules", nil: round.lost.insert(number)
        case "waiting":
            round.repaired += 1
            timer.add(requests.configuration.window, timeout, from: now)
        default: round.repaired += 1
        }
        // Any node sends them when they are due.
        for text in parts.dropFirst(2) {
            guard let outcome = TicketOutcome(text.string) else { continue }
            round.added.append(
                .outcome(ConfirmedOutcome(outcome: outcome, properties: ticket.properties, isInOrder: true)))
        }
    }
}
