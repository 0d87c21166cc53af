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
    private let attendance: Attendance
    private let push: any PushSender
    private let players: DuelPlayers
    private let search: OpponentSearch
    private let logger: Logger

    init(
        redis: any Redis, office: PostOffice, accounts: Accounts, attendance: Attendance, push: any PushSender,
        namespace: String, logger: Logger
    ) throws {
        (self.office, self.accounts, self.push, self.logger) = (office, accounts, push, logger)
        self.attendance = attendance
        documents = Documents("duel", redis: redis, namespace: namespace)
        players = DuelPlayers(documents)
        search = try OpponentSearch(
            players, accounts: accounts, redis: redis, office: office, namespace: namespace)
    }

    /// There is at most one match of two players.
    private static func name(of one: String, _ other: String) -> String {
        "match:" + [one, other].sorted().joined(separator: "+")
    }

    // MARK: Calls

    private struct Nothing: Codable {}
    private struct Done: Codable { var done = true }
    private struct Named: Codable { var name: String }
    private struct Begin: Codable { var opponent: String, id: String }
    private struct Random: Codable { var id: String }
    /// Without an id, the player's ticket is cancelled, whatever its id.
    private struct Cancel: Codable { var id: String? }
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
                    [caller.user, begin.opponent], by: caller.user, id: "\(caller.user):\(begin.id)", isRandom: false)
                return Done()
            }
        }
        gateway.addCall("/duel/random", to: router) { (random: Random, caller) in
            try await answering {
                try await search.wait(caller.user, id: random.id) { try await beginRandom($0, by: caller.user, $1) }
            }
        }
        gateway.addCall("/duel/random/cancel", to: router) { (cancel: Cancel, caller) in
            try await answering {
                try await search.cancel(caller.user, id: cancel.id) { try await beginRandom($0, by: caller.user, $1) }
            }
        }
        gateway.addCall("/duel/play", to: router) { (move: Move, caller) in
            try await answering {
                try Self.check(id: move.id)
                let toolbox = try await players.read(caller.user).state.toolbox
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
                try await players.change(caller.user) { player in
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
                try await players.change(caller.user) { player in
                    guard !player.friends.contains(named.name), player.friends.count < 200 else { return false }
                    player.friends.append(named.name)
                    return true
                }
                return try await state(of: caller.user)
            }
        }
        gateway.addCall("/duel/device", to: router) { (device: Device, caller) in
            try await answering {
                try await players.change(caller.user) { player in
                    guard player.device != device.token else { return false }
                    player.device = String(device.token.prefix(512))
                    return true
                }
                return Done()
            }
        }
    }

    private func state(of name: String) async throws -> State {
        let waiting = try await search.follow(name) { try await beginRandom($0, by: name, $1) }
        let player = try await players.read(name)
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
    private func begin(_ names: [String], by player: String, id: String, isRandom: Bool) async throws {
        let document = Self.name(of: names[0], names[1])
        // An earlier match must be counted before it is replaced: its node may have died before that.
        if let earlier = try await documents.read(document, DuelMatch.self), earlier.value.duel.ending != nil {
            try await carryOut(document, earlier, pushes: false)
        }
        var states: [DuelPlayer] = []
        for name in names {
            let changed = try await players.change(name) { player in
                guard player.state.id == nil else { return false }
                player.state.id = UUID().uuidString
                return true
            }
            states.append(changed.state)
        }
        let hasReachedLimit = states.map { $0.unfinished.count >= DuelPlayer.maxUnfinished }
        var hasBegun = false
        var generator = SystemRandomNumberGenerator()
        let new = DuelMatch(names, states, beginning: id, isRandom: isRandom, using: &generator)
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
                    names, states, beginning: id, isRandom: isRandom, after: match, using: &generator)
            }
            hasBegun = true
            return true
        }
        try await carryOut(document, read, by: player, pushes: hasBegun)
    }

    /// Begins the match that the matchmaker has found.
    private func beginRandom(_ names: [String], by player: String, _ id: String) async throws {
        try await begin(names, by: player, id: id, isRandom: true)
    }

    // MARK: Changes

    /// Quits all matches of a player, and removes what is stored of the player.
    func remove(_ name: String) async throws {
        guard let player = try await players.existing(name) else { return }
        try await search.abandon(name)
        for opponent in player.state.unfinished {
            do { _ = try await change(name, opponent) { $0.duel.quit(name) } } catch is CallRefusal {}
        }
        try await players.remove(name)
    }

    private func change(
        _ player: String, _ opponent: String, _ body: (inout DuelMatch) throws -> Bool
    ) async throws -> Done {
        let document = Self.name(of: player, opponent)
        let state = try await players.read(player).state
        var hasChanged = false
        let read: Documents.Read<DuelMatch> = try await documents.change(document) { match in
            guard match.hasPlayer(player, state) else { throw CallRefusal("gone", "this is not your match") }
            hasChanged = try body(&match)
            return hasChanged
        }
        // Also if nothing has changed: the node that has changed the match may have died.
        try await carryOut(document, read, by: player, pushes: hasChanged)
        return Done()
    }

    /// Records a match for both players, counts its end, and sends both their views. It may be done again: all of it has
    /// ids or numbers. A player who has left takes part no longer.
    ///
    /// - Parameters:
    ///   - mover: the player who has changed the match, and needs no push notification; `nil` if that is not known.
    ///   - pushes: whether to send push notifications too, which have no ids.
    private func carryOut(
        _ document: String, _ read: Documents.Read<DuelMatch>, by mover: String? = nil, pushes: Bool
    ) async throws {
        let (match, duel) = (read.value, read.value.duel)
        var participants: [String] = []
        for player in duel.players {
            var takesPart = false
            try await players.change(player) {
                let hasChanged = match.record(for: player, in: &$0.state)
                takesPart = hasChanged != nil
                return hasChanged == true
            }
            if takesPart { participants.append(player) }
        }
        guard !participants.isEmpty else { return try await documents.finish(document, version: read.version) }
        var notifications: [PushNotification] = []
        for player in participants where pushes && player != mover {
            // Before the messages are sent: they end the poll of a player who listens.
            if let notification = try await notification(of: duel, to: player) { notifications.append(notification) }
        }
        var messages: [String: [Message]] = [:]
        for player in participants {
            let view = match.view(of: player, match: match.beginning, version: read.version)
            messages[player] = [try Message(page: view, type: Self.messageType, ttl: .seconds(86400))]
        }
        do {
            let recipients = participants.joined(separator: "+")
            try await office.send(messages, id: "duel:\(document):\(match.beginning):\(read.version):\(recipients)")
        } catch {
            // The player has not read for long: the page asks for all matches when it is opened.
            guard error.code == .mailboxFull else { throw error }
        }
        try await documents.finish(document, version: read.version)
        for notification in notifications {
            do { try await push.send(notification.text, to: notification.token) } catch {
                logger.notice("no push notification", metadata: ["error": "\(error)"])
            }
        }
    }

    private struct PushNotification { var text: String, token: String }

    /// Returns the push notification for a player who has a device and is not listening; `nil` if there is no news.
    private func notification(of duel: Duel, to player: String) async throws -> PushNotification? {
        guard duel.next == player || duel.ending != nil, let token = try await players.read(player).device,
            try await !attendance.isListening(player)
        else { return nil }
        let text = duel.ending == nil ? "It is your turn against" : "Your match has ended:"
        return PushNotification(text: "\(text) \(duel.opponent(of: player))", token: token)
    }

    // MARK: Service

    /// Runs the matchmaker, and carries out the consequences that dead nodes have left.
    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await search.run() }
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
        guard document.hasPrefix("match:") else { return try await players.finish(document) }
        guard let read = try await documents.read(document, DuelMatch.self) else { return }
        try await carryOut(document, read, pushes: true)
    }
}
