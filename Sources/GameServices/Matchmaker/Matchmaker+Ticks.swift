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
            let reply = try await run(MatchmakerScripts.tick, [.integer(Self.maxSteps)])
            guard let parts = reply.array, parts.count >= 3, let wait = parts[0].string.flatMap({ Int($0) }),
                let hasMore = parts[1].integer, let givenUp = parts[2].integer
            else { throw GameServiceError(unexpected: reply) }
            instruments.gaveUp(givenUp)
            for outcome in parts.dropFirst(3) { await notify(outcome.string) }
            if hasMore == 0 || Task.isCancelled { return wait < 0 ? nil : .milliseconds(wait) }
        }
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
