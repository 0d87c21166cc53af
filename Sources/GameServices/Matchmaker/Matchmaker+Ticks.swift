// The work that is due by time, and the outcomes.
import CoordinationBase
import Hiredis
import QueueListen

extension Matchmaker {
    /// The number of steps of one script.
    private static let maxSteps = 16

    /// Does what is due, until the task is cancelled.
    func tickUntilCancelled() async {
        // Often enough for the node's lease and for outcomes of dead nodes.
        let pause = min(configuration.nodeTTL / 3, configuration.takeOverAfter / 2)
        var untilNext = Duration.zero
        while true {
            await timer.sleep(atMost: min(pause, untilNext))
            if Task.isCancelled { return }
            do throws(GameServiceError) {
                let next = try await tick()
                // The server's clock may be a moment behind this one; other times are the timer's.
                untilNext = next.map { $0 < .milliseconds(50) ? max($0, .milliseconds(1)) : pause } ?? pause
            } catch {
                if error.code == .cancelled || error.code == .stopped { return }
                instruments.cannotTick(error)
                untilNext = .milliseconds(100)
            }
        }
    }

    /// Does what is due now, in as many scripts as needed.
    ///
    /// - Returns: the time until the next step of any ticket; `nil` if there is none.
    func tick() async throws(GameServiceError) -> Duration? {
        while true {
            let call = memory?.begin()
            defer { memory?.end() }
            let reply = try await run(MatchmakerScripts.tick, [.integer(Self.maxSteps)])
            guard let parts = reply.array, parts.count >= 3, let wait = parts[0].string.flatMap({ Int($0) }),
                let hasMore = parts[1].integer, let givenUp = parts[2].integer
            else { throw GameServiceError(unexpected: reply) }
            instruments.gaveUp(givenUp)
            let outcomes = parts.dropFirst(3).map(\.string)
            let isLost = try await confirm(outcomes.compactMap { TicketOutcome($0) }, of: call)
            for (outcome, isLost) in zip(outcomes, isLost) where !isLost { await notify(outcome) }
            if hasMore == 0 || Task.isCancelled { return wait < 0 ? nil : .milliseconds(wait) }
        }
    }

    /// Remembers outcomes.
    ///
    /// - Returns: for each, whether Redis has lost it, and now has another outcome of one of its tickets.
    private func confirm(
        _ outcomes: [TicketOutcome], of call: MatchmakerMemory.Confirmations.Call?
    ) async throws(GameServiceError) -> [Bool] {
        var isLost = outcomes.map { _ in false }
        guard let memory, var call else { return isLost }
        let confirmed = outcomes.map {
            ConfirmedOutcome(outcome: $0, properties: memory.properties(of: $0), isInOrder: false)
        }
        while !memory.confirm(zip(confirmed, isLost).filter { !$1 }.map { .outcome($0.0) }, of: call) {
            // The outcomes may be those of the former server.
            call = memory.begin()
            defer { memory.end() }
            for (index, outcome) in confirmed.enumerated() where !isLost[index] {
                let reply = try await run(MatchmakerScripts.restore, MatchRequests.restore(outcome))
                isLost[index] = reply.array?.first?.integer == nil
                if isLost[index] { memory.reportLoss(1) }
            }
        }
        return isLost
    }

    /// Sends an outcome to all of its players, and notes that it was sent. If that fails, any node
    /// tries again later.
    func notify(_ text: String?) async {
        guard let outcome = TicketOutcome(text) else { return }
        do {
            try await office.send(
                [try message(outcome)], to: outcome.players.map(\.name), id: "match:\(name):\(outcome.id)")
        } catch {
            instruments.cannotTell((error as? QueueListenError).map { "\($0.code)" } ?? "\(error)")
            return
        }
        instruments.recordNotified(outcome)
        // Without it, another node sends the same again under the same id, which has no effect.
        _ = try? await run(MatchmakerScripts.told, [.string(outcome.id)])
    }

    private func message(_ outcome: TicketOutcome) throws -> Message {
        guard let reason = EndedTicket.Reason(rawValue: outcome.reason), let player = outcome.players.first else {
            return try Message(json: outcome.match(of: name), type: Self.matchType)
        }
        let ended = EndedTicket(ticket: player.ticket, matchmaker: name, player: player.name, reason: reason)
        return try Message(json: ended, type: Self.endedType)
    }
}
