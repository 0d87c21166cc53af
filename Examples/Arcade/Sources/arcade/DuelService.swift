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
        /// The opponents of this player's matches.
        var opponents: [String] = []
        var device: String?
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
        let read = try await documents.change(document, initial: Player(), body)
        // It has no consequences.
        try await documents.finish(document, version: read.version)
        return read.value
    }

    // MARK: Calls

    private struct Nothing: Codable {}
    private struct Done: Codable { var done = true }
    private struct Named: Codable { var name: String }
    private struct Begin: Codable { var opponent: String, id: String }
    private struct Ticket: Codable { var id: String }
    private struct Waiting: Codable { var isWaiting: Bool, opponent: String? }
    private struct Move: Codable { var opponent: String, equation: [String], id: String }
    private struct Trade: Codable { var item: String?, equation: [String]?, id: String }
    private struct Device: Codable { var token: String }
    private struct State: Codable {
        var iq: Int, tier: String, toolbox: [String], friends: [String], matches: [DuelMatch.View]
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
                try await self.begin([caller.user, begin.opponent], id: begin.id, isRandom: false)
                return Done()
            }
        }
        gateway.addCall("/duel/random", to: router) { (ticket: Ticket, caller) in
            try await answering { try await random(caller.user, ticket: ticket.id) }
        }
        gateway.addCall("/duel/random/cancel", to: router) { (ticket: Ticket, _) in
            try await answering {
                let state = try await opponents.cancel(ticket.id)
                return Waiting(isWaiting: state == .waiting, opponent: nil)
            }
        }
        gateway.addCall("/duel/play", to: router) { (move: Move, caller) in
            try await answering {
                try Self.check(id: move.id)
                return try await change(caller.user, move.opponent) { match in
                    var generator = SystemRandomNumberGenerator()
                    return try match.duel.play(move.equation, by: caller.user, id: move.id, using: &generator)
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
        let player = try await player(name)
        var views: [DuelMatch.View] = []
        for opponent in player.opponents {
            let document = Self.name(of: name, opponent)
            guard let match = try await documents.read(document, DuelMatch.self) else { continue }
            views.append(match.value.view(of: name, match: match.value.beginning, version: match.version))
        }
        return State(
            iq: player.state.iq, tier: player.state.tier.rawValue, toolbox: player.state.toolbox,
            friends: player.friends, matches: views)
    }

    // MARK: Matches

    private static func check(id: String) throws(CallRefusal) {
        guard (1...64).contains(id.utf8.count) else { throw CallRefusal("id", "an id has 1 to 64 bytes") }
    }

    /// Begins a match, unless there is one of these players that has not ended.
    private func begin(_ players: [String], id: String, isRandom: Bool) async throws {
        try Self.check(id: id)
        let document = Self.name(of: players[0], players[1])
        // An earlier match must be counted before it is replaced: its node may have died before that.
        if let earlier = try await documents.read(document, DuelMatch.self), earlier.value.duel.ending != nil {
            try await carryOut(document, earlier)
        }
        var states: [DuelPlayer] = []
        for (player, opponent) in zip(players, players.reversed()) {
            // First the lists: a match that is in no list would never be found.
            let changed = try await changePlayer(player) { player in
                guard !player.opponents.contains(opponent) else { return false }
                player.opponents.append(opponent)
                return true
            }
            states.append(changed.state)
        }
        var generator = SystemRandomNumberGenerator()
        let new = DuelMatch(players, states, beginning: id, isRandom: isRandom, using: &generator)
        let read = try await documents.change(document, initial: new) { match in
            // There was no match of these players.
            if match == new { return true }
            guard match.beginning != id else { return false }
            guard match.duel.ending != nil else {
                if isRandom { return false }
                throw CallRefusal("exists", "you have a match with this player")
            }
            match = new
            return true
        }
        try await carryOut(document, read)
    }

    /// Waits for an opponent of about equal IQ, or begins the match with one who was found.
    private func random(_ name: String, ticket: String) async throws -> Waiting {
        let player = try await player(name)
        let (_, state) = try await opponents.enqueue(
            name, rating: player.state.iq, timeout: .seconds(300), ticket: ticket)
        guard case .matched(let match) = state else { return Waiting(isWaiting: state == .waiting, opponent: nil) }
        // In the order of the match, which is the same for both.
        let names = match.players.map(\.name)
        try await begin(names, id: match.id, isRandom: true)
        return Waiting(isWaiting: false, opponent: names.first { $0 != name })
    }

    /// Quits all matches of a player, and removes what is stored of the player.
    func remove(_ name: String) async throws {
        guard let player = try await documents.read(Self.name(player: name), Player.self)?.value else { return }
        for opponent in player.opponents {
            do { _ = try await change(name, opponent) { $0.duel.quit(name) } } catch is CallRefusal {}
        }
        try await documents.remove(Self.name(player: name))
    }

    private func change(
        _ player: String, _ opponent: String, _ body: (inout DuelMatch) throws -> Bool
    ) async throws -> Done {
        let document = Self.name(of: player, opponent)
        let read: Documents.Read<DuelMatch> = try await documents.change(document) { match in
            guard match.duel.players.contains(player) else { throw CallRefusal("gone", "this is not your match") }
            return try body(&match)
        }
        try await carryOut(document, read)
        return Done()
    }

    /// Counts the end of a match, and sends both players their views. It may be done again: all of it has ids.
    private func carryOut(_ document: String, _ read: Documents.Read<DuelMatch>) async throws {
        let (match, duel) = (read.value, read.value.duel)
        if duel.ending != nil {
            for (player, change) in zip(duel.players, duel.changes(of: match.iqs)) {
                try await changePlayer(player) {
                    $0.state.count(change, of: match.beginning, against: duel.opponent(of: player))
                }
            }
        }
        var messages: [String: [Message]] = [:]
        for player in duel.players {
            let view = match.view(of: player, match: match.beginning, version: read.version)
            messages[player] = [try Message(page: view, type: Self.messageType, ttl: .seconds(86400))]
        }
        do {
            try await office.send(messages, id: "duel:\(document):\(match.beginning):\(read.version)")
        } catch {
            // The player has not read for long: the page asks for all matches when it is opened.
            guard error.code == .mailboxFull else { throw error }
        }
        try await documents.finish(document, version: read.version)
        for player in duel.players where duel.next == player || duel.ending != nil {
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
        try await carryOut(document, read)
    }
}
