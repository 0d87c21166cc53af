// Tasks that look for matches.
@testable import CoordinationBase
@testable import GameServices

/// A player, who waits with one ticket after the other.
///
/// `@unchecked`: a world is used by one thread.
final class PlayerTask: @unchecked Sendable {
    private let services: ServiceProcess
    private var owner: MailProcess { services.owner }
    private unowned let world: World
    private let judge: MatchJudge
    private let player: String
    private var lastTicket = 0

    init(_ services: ServiceProcess, _ number: Int) {
        (self.services, world) = (services, services.world)
        judge = services.world.family(MatchJudge.self)
        player = "player \(services.owner.process.number).\(number)"
    }

    func run() async {
        while world.isOpen, !owner.client.isOver {
            await owner.pause(100...1_000_000)
            if world.random.isOne(in: 4) { await count() } else { await play() }
        }
    }

    /// Waits with one ticket until it has ended, and its outcome has been sent.
    private func play() async {
        lastTicket += 1
        let ticket = "ticket \(player)-\(lastTicket)"
        let rating = 100 * Int.random(in: 0...8, using: &world.random)
        let timeout: Duration? =
            world.random.isOne(in: 3) ? .microseconds(world.random.time(1000...5_000_000)) : nil
        judge.begins(ticket, player, rating, timeout)
        guard await enqueue(ticket, rating, timeout) else { return }
        while !owner.client.isOver, judge.isOpen(ticket) {
            await owner.pause(1000...800_000)
            // At the end, one with a timeout is left to it.
            let cancels = world.isOpen ? world.random.isOne(in: 5) : timeout == nil
            await look(at: ticket, cancels: cancels)
        }
        while !owner.client.isOver, !judge.isSent(ticket) { await owner.pause(10_000...500_000) }
    }

    /// Returns whether the ticket may exist.
    private func enqueue(_ ticket: String, _ rating: Int, _ timeout: Duration?) async -> Bool {
        var mayHaveRun = false
        for _ in 0..<5 {
            do throws(GameServiceError) {
                let (losses, begun) = (world.judge.losses, world.now)
                let state = try await services.matchmaker.enqueue(
                    player, rating: rating, timeout: timeout, ticket: ticket
                ).state
                judge.isEnqueued(ticket, at: services, losses: losses)
                judge.sees(ticket, state, at: services, losses: losses, since: begun)
                // A repetition has no second effect.
                if !world.random.isOne(in: 4) { return true }
                mayHaveRun = true
            } catch {
                world.note("\(owner.process.name) cannot enqueue \(ticket): \(error)")
                if error.code == .conflict { judge.conflicts(ticket, player) }
                mayHaveRun = mayHaveRun || error.mayHaveRun
                if owner.client.isOver { return false }
            }
            await owner.pause(1000...300_000)
        }
        if !mayHaveRun { judge.isRefused(ticket) }
        return mayHaveRun
    }

    private func look(at ticket: String, cancels: Bool) async {
        let (losses, begun) = (world.judge.losses, world.now)
        if cancels { judge.cancels(ticket) }
        do throws(GameServiceError) {
            let state =
                cancels
                ? try await services.matchmaker.cancel(ticket) : try await services.matchmaker.state(of: ticket)
            judge.sees(ticket, state, at: services, cancels: cancels, losses: losses, since: begun)
        } catch {
            world.note("\(owner.process.name) cannot look at \(ticket): \(error)")
            if error.code == .notFound { judge.isMissing(ticket, since: begun) }
        }
    }

    private func count() async {
        guard let waiting = try? await services.matchmaker.counts().waiting else { return }
        judge.counts(waiting)
    }
}
