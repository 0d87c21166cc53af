// The judge of matchmakers: their answers, the outcomes that players receive, and the queue on the server.
import SimulatedRedis

@testable import CoordinationBase
@testable import GameServices
@testable import Hiredis

/// Checks that a ticket ends once, in one match of suitable players, that all of them are told, and that no suitable group
/// waits.
final class MatchJudge: FamilyJudge {
    static let name = "duel"

    private struct Ticket {
        var player: String
        var rating: Int
        var timeout: Duration?
        var begun: Time
        var isEnqueued = false
        var isCancelled = false
        var isRefused = false
        /// Whether it is gone: the server has lost it, or it was never there.
        var isGone = false
        /// Its end, and how often the server had lost data when it was asked for.
        var end: (state: TicketState, losses: Int)?
        /// How often the server had lost data when its enqueue began.
        var losses = 0
        /// The process to which it was confirmed that the ticket waits, and when last.
        var holder: (node: ServiceProcess, at: Time)?
        /// Its cancellation: to which process it was confirmed, and when first.
        var cancellation: (node: ServiceProcess, at: Time)?
        /// Whether its players were told.
        var isTold = false
        /// When it was first missing.
        var missingSince: Time?
    }

    private unowned let world: World
    private var tickets: [String: Ticket] = [:]
    private var rules: MatchmakerConfiguration { ServiceProcess.rules(world.plan.services!) }

    init(_ world: World) { self.world = world }

    func begins(_ ticket: String, _ player: String, _ rating: Int, _ timeout: Duration?) {
        tickets[ticket] = Ticket(
            player: player, rating: rating, timeout: timeout, begun: world.now, losses: world.judge.losses)
    }

    func isEnqueued(_ ticket: String, at node: ServiceProcess, losses: Int) {
        tickets[ticket]!.isEnqueued = true
        tickets[ticket]!.losses = losses
        tickets[ticket]!.holder = (node, world.now)
    }

    /// Whether a process to which something was confirmed has compared with the present server before a call began, so that
    /// nothing of it is lost. A node that has reported a loss promises nothing.
    private func isRepaired(_ holder: (node: ServiceProcess, at: Time)?, before begun: Time) -> Bool {
        guard let (node, at) = holder, node.matchmaker.memory?.confirmations.withLog({ $0.lossCount }) == 0 else {
            return false
        }
        return node.owner.client.hasRepaired(at, before: begun)
    }

    func isRefused(_ ticket: String) { tickets[ticket]!.isRefused = true }

    func cancels(_ ticket: String) { tickets[ticket]!.isCancelled = true }

    /// Whether the end of a ticket is not known.
    func isOpen(_ ticket: String) -> Bool { tickets[ticket]!.end == nil && !tickets[ticket]!.isGone }

    // MARK: Answers

    /// - Parameters:
    ///   - node: of the ticket, and of the call.
    ///   - losses: how often the server had lost data when the call began.
    ///   - begun: when the call began.
    func sees(
        _ name: String, _ state: TicketState, at node: ServiceProcess, cancels: Bool = false, losses: Int,
        since begun: Time
    ) {
        let owner = node.owner
        world.judge { $0.hasChecked() }
        let ticket = tickets[name]!
        if isRepaired(ticket.cancellation, before: begun), state != .cancelled {
            world.violation("\(name) is \(state), and was cancelled before a failover")
        }
        if cancels, state == .cancelled { tickets[name]!.cancellation = ticket.cancellation ?? (node, world.now) }
        if let end = ticket.end, end.losses == world.judge.losses, losses == end.losses, end.state != state {
            world.violation("\(name) is \(state), and was \(end.state)")
        }
        switch state {
        case .waiting: return
        case .cancelled: world.check(ticket.isCancelled, "\(name) is cancelled, and nobody has cancelled it")
        case .timedOut:
            // Timeouts and the server's clock have whole milliseconds.
            let isEarly = ticket.timeout.map { world.now + 2000 < ticket.begun + Time($0.microseconds) } ?? true
            world.check(!isEarly || world.plan.faults.clockSteps > 0, "\(name) has timed out too early")
        case .lost:
            let time = world.now - ticket.begun + 5_000_000
            world.check(!owner.isCalm(for: time) || !world.isCalm(for: time), "\(name) is lost, and its node lives")
        case .matched(let match): checkMatch(match, name, losses)
        }
        if losses >= ticket.end?.losses ?? 0 { tickets[name]!.end = (state, losses) }
    }

    private func checkMatch(_ match: Match, _ name: String, _ losses: Int) {
        world.check(match.players.contains { $0.ticket == name }, "\(name) is not in its match \(match)")
        let players = Set(match.players.map(\.name))
        world.check(match.players.count == rules.size && players.count == rules.size, "a match has \(match.players)")
        let ratings = match.players.map(\.rating)
        world.check(ratings.max()! - ratings.min()! <= rules.window.max, "the match \(match) is not suitable")
        for player in match.players {
            guard let ticket = tickets[player.ticket] else { return world.violation("\(player) has no ticket") }
            let isRight = ticket.player == player.name && ticket.rating == player.rating && !ticket.isRefused
            world.check(isRight, "\(match) has \(player)")
            let distance = ratings.map { abs($0 - player.rating) }.max()!
            world.check(distance <= widest(ticket), "\(match) is outside the window of \(player)")
            guard let end = ticket.end, end.losses == losses, losses == world.judge.losses else { continue }
            world.check(end.state == .matched(match), "\(player.ticket) of \(match) is \(end.state)")
        }
    }

    /// The largest window that a ticket can have now.
    private func widest(_ ticket: Ticket) -> Int {
        let window = rules.window
        if world.plan.faults.clockSteps > 0 { return window.max }
        // The server's clock has whole milliseconds.
        let widenings = (world.now - ticket.begun + 1000) / Time(window.interval.microseconds)
        return min(window.max, window.start + window.step * Int(widenings))
    }

    /// A player waits with another ticket, or the ticket was used before.
    func conflicts(_ name: String, _ player: String) {
        let ticket = tickets[name]!
        let mayWait = tickets.contains { key, other in
            key != name && other.player == player && !other.isRefused
                && (other.end == nil || other.end!.losses < world.judge.losses)
        }
        world.check(
            mayWait && !ticket.isEnqueued || world.judge.losses > 0, "\(name) conflicts, and \(player) has no other")
    }

    /// There is no such ticket. A copy of its enqueue may still arrive.
    func isMissing(_ name: String, since begun: Time) {
        let ticket = tickets[name]!
        if isRepaired(ticket.holder, before: begun) || isRepaired(ticket.cancellation, before: begun) {
            world.violation("\(name) is missing, and a process has repaired it")
        }
        world.check(!ticket.isEnqueued || ticket.losses < world.judge.losses, "\(name) was confirmed, and is missing")
        let since = ticket.missingSince ?? world.now
        tickets[name]!.missingSince = since
        if world.now > since + 10_000_000 { tickets[name]!.isGone = true }
    }

    /// While all ratings match, a full group never waits.
    func counts(_ waiting: Int) {
        if rules.window == .unlimited { world.check(waiting < rules.size, "\(waiting) players wait, and nobody plays") }
    }

    // MARK: The queue

    /// A ticket that waits, as the index has it.
    private struct Waiting {
        var id: String
        var rating: Int
        /// How far other ratings may be away.
        var width: Int
        var owner: String
    }

    func audit(_ ledger: Ledger) {
        let waiting = readQueue()
        let now = world.servers.master.now / 1000
        let leases = nodes
        checkGroups(waiting.filter { leases[$0.owner] ?? 0 > now })
        // Other nodes end the tickets of a dead one.
        guard world.isCalm(for: 10_000_000), world.processes.contains(where: \.isReachable) else { return }
        for ticket in waiting where leases[ticket.owner] ?? 0 < now - 6000 {
            world.violation("\(ticket.id) waits, and its node has been dead for 6 s")
        }
    }

    /// Checks that no group is suitable: each rating is within the windows of all.
    private func checkGroups(_ waiting: [Waiting], _ group: [Waiting] = []) {
        if group.count == rules.size {
            return world.violation("\(group.map(\.id)) are suitable, and wait: \(group.map { ($0.rating, $0.width) })")
        }
        for (index, next) in waiting.enumerated() {
            let others = waiting.dropFirst(index + 1).filter {
                abs($0.rating - next.rating) <= min($0.width, next.width)
            }
            checkGroups(others, group + [next])
        }
    }

    private var keys: ServiceKeys? {
        try? ServiceKeys(namespace: BoardJudge.namespace, kind: "match", name: Self.name)
    }

    private func words(_ command: Bytes, _ key: String, _ arguments: Bytes...) -> [String] {
        guard let keys else { return [] }
        var server = world.servers.master
        let reply = server.execute([command, Bytes(keys.key(key))] + arguments)
        return reply?.elements?.compactMap { $0.bytes?.text } ?? []
    }

    /// When the lease of each node ends, in milliseconds by the server's clock.
    private var nodes: [String: Int64] {
        let words = words("ZRANGE", "nodes", "0", "-1", "WITHSCORES")
        let pairs = stride(from: 0, to: words.count - 1, by: 2).map { (words[$0], Int64(words[$0 + 1]) ?? 0) }
        return Dictionary(pairs) { first, _ in first }
    }

    /// Reads the waiting tickets: see Sources/GameServices/Lua/match_tickets.lua.
    private func readQueue() -> [Waiting] {
        words("ZRANGE", "index", "0", "-1").compactMap { member in
            guard member.hasPrefix("q") else { return nil }
            let fields = member.dropFirst(2)
            guard let level = Int(fields.prefix(2), radix: 16),
                let rating = Int(fields.dropFirst(2).prefix(12), radix: 16)
            else { return nil }
            let window = rules.window
            return Waiting(
                id: String(fields.dropFirst(44)), rating: rating - (1 << 42),
                width: min(window.max, window.start + level * window.step),
                owner: String(fields.dropFirst(28).prefix(16)))
        }
    }

    // MARK: Outcomes

    /// Whether the players of an ended ticket have been sent its outcome.
    func isSent(_ name: String) -> Bool {
        guard let ticket = tickets[name], let end = ticket.end, end.losses == world.judge.losses, let mail = world.mail
        else { return true }
        func has(_ player: String, _ text: String) -> Bool {
            mail.ledger.texts[mail.key(of: player)]?.keys.contains { $0.contains("\"\(text)\"") } ?? false
        }
        let isTold =
            switch end.state {
            case .waiting, .cancelled: true
            case .timedOut, .lost: ticket.isTold || has(ticket.player, name)
            case .matched(let match): ticket.isTold || match.players.allSatisfy { has($0.name, match.id) }
            }
        tickets[name]!.isTold = isTold
        return isTold
    }

    func checkEnd(_ ledger: Ledger) {
        for name in tickets.keys.sorted() where !isSent(name) {
            world.violation("\(tickets[name]!.player) was not told that \(name) is \(tickets[name]!.end!.state)")
        }
    }
}
