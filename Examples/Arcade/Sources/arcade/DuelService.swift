import BET
import Foundation
import GameServices
import Games
import Gateway
import Hiredis
import Hummingbird
import Logging
import QueueListen
import ServiceLifecycle

/// The mathematical duel: matches last for days, so players and matches are documents, and not objects of
/// presence.
///
/// A move is a compare-and-set on the match's version. Then both players receive their views, under the match with its
/// version as the id; at the end of a match both IQs are counted first. If the node dies in between, another one does that.
struct DuelService: Service {
    private static let messageType = "duel"

    private let documents: Documents
    private let office: PostOffice
    private let accounts: Accounts
    private let push: any PushSender
    private let opponents: Matchmaker
    private let logger: Logger

    init(
        redis: any Redis, office: PostOffice, accounts: Accounts, push: any PushSender, namespace: String,
        logger: Logger
    ) throws {
        (self.office, self.accounts, self.push, self.logger) = (office, accounts, push, logger)
        documents = Documents("duel", redis: redis, namespace: namespace)
        var configuration = MatchmakerConfiguration()
        // About equal IQ at first, and any player after half a minute.
        configuration.window = MatchWindow(start: 10, step: 20, every: .seconds(3), max: 200)
        opponents = try Matchmaker(
            "duel", redis: redis, office: office, namespace: namespace, configuration: configuration)
    }

    // MARK: Documents

    /// The document of a player.
    private struct Player: Codable, Sendable {
        var state = DuelPlayer()
        var friends: [String] = []
        var device: String?
        /// With which the player waits for a random opponent, or has waited.
        var ticket: Ticket?
    }

    /// A player's ticket of the matchmaker. Its name there contains the player's, so that players cannot use one another's.
    private struct Ticket: Codable, Hashable, Sendable {
        static let maxIDBytes = 40
        /// From the page.
        var id: String
        /// How often a ticket was replaced, because it was lost with its node.
        var attempt = 0

        func name(of player: String) -> String { "\(player):\(attempt):\(id)" }
    }

    private static func name(player: String) -> String { "player:" + player }

    /// There is at most one match of two players.
    private static func name(of one: String, _ other: String) -> String {
        "match:" + [one, other].sorted().joined(separator: "+")
    }

    private func player(_ name: String) async throws -> Player {
        try await documents.read(Self.name(player: name), Player.self)?.value ?? Player()
    }

    @discardableResult
    private func changePlayer(_ name: String, _ body: (inout Player) throws -> Bool) async throws -> Player {
        let document = Self.name(player: name)
        var hasChanged = false
        let read = try await documents.change(document, initial: Player()) { player in
            hasChanged = try body(&player)
            return hasChanged
        }
        // It has no consequences.
        if hasChanged { try await documents.finish(document, version: read.version) }
        return read.value
    }

    // MARK: Calls

    private struct Nothing: Codable {}
    private struct Done: Codable { var done = true }
    private struct Named: Codable { var name: String }
    private struct Begin: Codable { var opponent: String, id: String }
    private struct Random: Codable { var id: String }
    /// Without an id, the player's ticket is cancelled, whatever its id.
    private struct Cancel: Codable { var id: String? }
    private struct Waiting: Codable { var isWaiting: Bool, opponent: String? }
    private struct Move: Codable { var opponent: String, equation: [String], id: String }
    private struct Trade: Codable { var item: String?, equation: [String]?, id: String }
    private struct Device: Codable { var token: String }
    private struct State: Codable {
        var iq: Int, tier: String, toolbox: [String], friends: [String], matches: [DuelMatch.View]
        /// Whether the player waits for a random opponent, and the opponent if one was found now.
        var isWaiting: Bool, found: String?
        var prices = DuelPlayer.prices
        var tutorial = DuelPlayer.tutorial
    }

    func addCalls<Context: RequestContext>(_ gateway: Gateway, _ router: Router<Context>) {
        gateway.addCall("/duel/state", to: router) { (_: Nothing, caller) in
            try await answering { try await state(of: caller.user) }
        }
        gateway.addCall("/duel/begin", to: router) { (begin: Begin, caller) in
            try await answering {
                guard Accounts.isName(begin.opponent), begin.opponent != caller.user,
                    try await accounts.exists(begin.opponent)
                else { throw CallRefusal("opponent", "there is no such player") }
                try Self.check(id: begin.id)
                try await self.begin(
                    [caller.user, begin.opponent], id: "\(caller.user):\(begin.id)", isRandom: false)
                return Done()
            }
        }
        gateway.addCall("/duel/random", to: router) { (random: Random, caller) in
            try await answering { try await wait(caller.user, id: random.id) }
        }
        gateway.addCall("/duel/random/cancel", to: router) { (cancel: Cancel, caller) in
            try await answering { try await self.cancel(caller.user, id: cancel.id) }
        }
        gateway.addCall("/duel/play", to: router) { (move: Move, caller) in
            try await answering {
                try Self.check(id: move.id)
                let toolbox = try await player(caller.user).state.toolbox
                return try await change(caller.user, move.opponent) { match in
                    var generator = SystemRandomNumberGenerator()
                    return try match.duel.play(
                        move.equation, by: caller.user, id: move.id, toolbox: toolbox, using: &generator)
                }
            }
        }
        gateway.addCall("/duel/quit", to: router) { (named: Named, caller) in
            try await answering { try await change(caller.user, named.name) { $0.duel.quit(caller.user) } }
        }
        gateway.addCall("/duel/trade", to: router) { (trade: Trade, caller) in
            try await answering {
                try Self.check(id: trade.id)
                guard try await accounts.isRegistered(caller.user) else {
                    throw CallRefusal("anonymous", "only those who have registered their name can buy and make things")
                }
                try await changePlayer(caller.user) { player in
                    if let equation = trade.equation { return try player.state.craft(equation, id: trade.id) }
                    return try player.state.buy(trade.item ?? "", id: trade.id)
                }
                return try await state(of: caller.user)
            }
        }
        gateway.addCall("/duel/friend", to: router) { (named: Named, caller) in
            try await answering {
                guard Accounts.isName(named.name), try await accounts.exists(named.name) else {
                    throw CallRefusal("opponent", "there is no such player")
                }
                try await changePlayer(caller.user) { player in
                    guard !player.friends.contains(named.name), player.friends.count < 200 else { return false }
                    player.friends.append(named.name)
                    return true
                }
                return try await state(of: caller.user)
            }
        }
        gateway.addCall("/duel/device", to: router) { (device: Device, caller) in
            try await answering {
                try await changePlayer(caller.user) { player in
                    guard player.device != device.token else { return false }
                    player.device = String(device.token.prefix(512))
                    return true
                }
                return Done()
            }
        }
    }

    private func state(of name: String) async throws -> State {
        let waiting = try await followTicket(of: name)
        let player = try await player(name)
        var views: [DuelMatch.View] = []
        for opponent in player.state.opponents {
            let document = Self.name(of: name, opponent)
            guard let match = try await documents.read(document, DuelMatch.self),
                match.value.hasPlayer(name, player.state)
            else { continue }
            views.append(match.value.view(of: name, match: match.value.beginning, version: match.version))
        }
        return State(
            iq: player.state.iq, tier: player.state.tier.rawValue, toolbox: player.state.toolbox,
            friends: player.friends, matches: views, isWaiting: waiting.isWaiting, found: waiting.opponent)
    }

    // MARK: Matches

    private static func check(id: String) throws(CallRefusal) {
        guard (1...64).contains(id.utf8.count) else { throw CallRefusal("id", "an id has 1 to 64 bytes") }
    }

    /// Begins a match, unless there is one of these players that has not ended.
    private func begin(_ players: [String], id: String, isRandom: Bool) async throws {
        let document = Self.name(of: players[0], players[1])
        // An earlier match must be counted before it is replaced: its node may have died before that.
        if let earlier = try await documents.read(document, DuelMatch.self), earlier.value.duel.ending != nil {
            try await carryOut(document, earlier, pushes: false)
        }
        var states: [DuelPlayer] = []
        for player in players {
            let changed = try await changePlayer(player) { player in
                guard player.state.id == nil else { return false }
                player.state.id = UUID().uuidString
                return true
            }
            states.append(changed.state)
        }
        let hasReachedLimit = states.map { $0.unfinished.count >= DuelPlayer.maxUnfinished }
        var hasBegun = false
        var generator = SystemRandomNumberGenerator()
        let new = DuelMatch(players, states, beginning: id, isRandom: isRandom, using: &generator)
        let read = try await documents.change(document, initial: new) { match in
            hasBegun = false
            // Otherwise there was no match of these players.
            if match != new {
                guard match.beginning != id else { return false }
                guard match.duel.ending != nil else {
                    if isRandom { return false }
                    throw CallRefusal("exists", "you have a match with this player")
                }
            }
            // Random opponents have waited for the match: it begins nevertheless.
            if !isRandom, let place = hasReachedLimit.firstIndex(of: true) {
                let who = place == 0 ? "you have" : "this player has"
                throw CallRefusal("tooMany", "\(who) \(DuelPlayer.maxUnfinished) matches that have not ended")
            }
            if match != new {
                match = DuelMatch(
                    players, states, beginning: id, isRandom: isRandom, after: match, using: &generator)
            }
            hasBegun = true
            return true
        }
        try await carryOut(document, read, pushes: hasBegun)
    }

    // MARK: Random opponents

    /// Waits for an opponent of about equal IQ, or begins the match with one who was found. A player who waits already goes
    /// on waiting with the first ticket.
    private func wait(_ name: String, id: String) async throws -> Waiting {
        guard (1...Ticket.maxIDBytes).contains(id.utf8.count) else {
            throw CallRefusal("id", "the id of a ticket has 1 to \(Ticket.maxIDBytes) bytes")
        }
        let waiting = try await followTicket(of: name)
        if waiting.isWaiting || waiting.opponent != nil { return waiting }
        let ticket = Ticket(id: id)
        // It is recorded before it waits, so that it is known also if this node dies. Another call that looks at it in
        // between removes it.
        if try await replaceTicket(of: name, nil, by: ticket) == ticket {
            try await enqueue(name, ticket)
            try await replaceTicket(of: name, nil, by: ticket)
        }
        return try await followTicket(of: name)
    }

    private func cancel(_ name: String, id: String?) async throws -> Waiting {
        if let ticket = try await player(name).ticket, id == nil || id == ticket.id {
            switch try await state(of: ticket, of: name, cancelling: true) {
            case .matched: break
            default: try await replaceTicket(of: name, ticket, by: nil)
            }
        }
        return try await followTicket(of: name)
    }

    /// Returns the state of a ticket; `nil` if the matchmaker does not know it.
    private func state(of ticket: Ticket, of name: String, cancelling: Bool = false) async throws -> TicketState? {
        let ticket = ticket.name(of: name)
        do {
            return cancelling ? try await opponents.cancel(ticket) : try await opponents.state(of: ticket)
        } catch {
            guard error.code == .notFound else { throw error }
            return nil
        }
    }

    /// Enqueues a ticket, unless that was done before: the IQ may have changed since then.
    private func enqueue(_ name: String, _ ticket: Ticket) async throws {
        guard try await state(of: ticket, of: name) == nil else { return }
        try await opponents.enqueue(
            name, rating: try await player(name).state.iq, timeout: .seconds(300), ticket: ticket.name(of: name))
    }

    /// Replaces the player's ticket, unless it is another one by now.
    ///
    /// - Returns: the player's ticket after that.
    @discardableResult
    private func replaceTicket(of name: String, _ old: Ticket?, by new: Ticket?) async throws -> Ticket? {
        try await changePlayer(name) { player in
            guard player.ticket == old else { return false }
            player.ticket = new
            return true
        }.ticket
    }

    /// Acts on the state of the player's ticket: begins the match if an opponent was found, and replaces a ticket that was
    /// lost with its node. A page calls this after each message of the matchmaker and when it is loaded.
    private func followTicket(of name: String) async throws -> Waiting {
        while let ticket = try await player(name).ticket {
            switch try await state(of: ticket, of: name) {
            case .waiting: return Waiting(isWaiting: true, opponent: nil)
            case .matched(let match):
                // In the order of the match, which is the same for both.
                let names = match.players.map(\.name)
                if let opponent = names.first(where: { $0 != name }), try await accounts.exists(opponent) {
                    try await begin(names, id: match.id, isRandom: true)
                    try await replaceTicket(of: name, ticket, by: nil)
                    return Waiting(isWaiting: false, opponent: opponent)
                }
                // The opponent was a guest who has left.
                fallthrough
            case .lost:
                let next = Ticket(id: ticket.id, attempt: ticket.attempt + 1)
                try await enqueue(name, next)
                try await replaceTicket(of: name, ticket, by: next)
            case .cancelled, .timedOut, nil: try await replaceTicket(of: name, ticket, by: nil)
            }
        }
        return Waiting(isWaiting: false, opponent: nil)
    }

    /// Quits all matches of a player, and removes what is stored of the player.
    func remove(_ name: String) async throws {
        guard let player = try await documents.read(Self.name(player: name), Player.self)?.value else { return }
        if let ticket = player.ticket { _ = try await state(of: ticket, of: name, cancelling: true) }
        for opponent in player.state.unfinished {
            do { _ = try await change(name, opponent) { $0.duel.quit(name) } } catch is CallRefusal {}
        }
        try await documents.remove(Self.name(player: name))
    }

    private func change(
        _ player: String, _ opponent: String, _ body: (inout DuelMatch) throws -> Bool
    ) async throws -> Done {
        let document = Self.name(of: player, opponent)
        let state = try await self.player(player).state
        var hasChanged = false
        let read: Documents.Read<DuelMatch> = try await documents.change(document) { match in
            guard match.hasPlayer(player, state) else { throw CallRefusal("gone", "this is not your match") }
            hasChanged = try body(&match)
            return hasChanged
        }
        // Also if nothing has changed: the node that has changed the match may have died.
        try await carryOut(document, read, pushes: hasChanged)
        return Done()
    }

    /// Records a match for both players, counts its end, and sends both their views. It may be done again: all of it has
    /// ids or numbers. A player who has left takes part no longer.
    ///
    /// - Parameter pushes: whether to send push notifications too, which have no ids.
    private func carryOut(_ document: String, _ read: Documents.Read<DuelMatch>, pushes: Bool) async throws {
        let (match, duel) = (read.value, read.value.duel)
        var players: [String] = []
        for player in duel.players {
            var takesPart = false
            try await changePlayer(player) {
                let hasChanged = match.record(for: player, in: &$0.state)
                takesPart = hasChanged != nil
                return hasChanged == true
            }
            if takesPart { players.append(player) }
        }
        guard !players.isEmpty else { return try await documents.finish(document, version: read.version) }
        var messages: [String: [Message]] = [:]
        for player in players {
            let view = match.view(of: player, match: match.beginning, version: read.version)
            messages[player] = [try Message(page: view, type: Self.messageType, ttl: .seconds(86400))]
        }
        do {
            let recipients = players.joined(separator: "+")
            try await office.send(messages, id: "duel:\(document):\(match.beginning):\(read.version):\(recipients)")
        } catch {
            // The player has not read for long: the page asks for all matches when it is opened.
            guard error.code == .mailboxFull else { throw error }
        }
        try await documents.finish(document, version: read.version)
        guard pushes else { return }
        for player in players where duel.next == player || duel.ending != nil {
            let opponent = duel.opponent(of: player)
            let text = duel.ending == nil ? "It is your turn against" : "Your match has ended:"
            await self.push(to: player, "\(text) \(opponent)")
        }
    }

    /// Sends a push notification to a player without an open page.
    private func push(to player: String, _ text: String) async {
        do {
            guard let token = try await self.player(player).device,
                try await office.mailbox(player).inspect()?.listeningProcesses ?? 0 == 0
            else { return }
            try await push.send(text, to: token)
        } catch { logger.notice("no push notification", metadata: ["error": "\(error)"]) }
    }

    // MARK: Service

    /// Runs the matchmaker, and carries out the consequences that dead nodes have left.
    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await opponents.run() }
                group.addTask {
                    while !Task.isCancelled {
                        do {
                            for document in try await documents.overdue(seconds: 2) { try await carryOut(document) }
                        } catch { logger.notice("a match must wait", metadata: ["error": "\(error)"]) }
                        try? await Task.sleep(for: .seconds(1))
                    }
                }
            }
        }
    }

    private func carryOut(_ document: String) async throws {
        guard document.hasPrefix("match:") else {
            guard let read = try await documents.read(document, Player.self) else { return }
            return try await documents.finish(document, version: read.version)
        }
        guard let read = try await documents.read(document, DuelMatch.self) else { return }
        try await carryOut(document, read, pushes: true)
    }
}
