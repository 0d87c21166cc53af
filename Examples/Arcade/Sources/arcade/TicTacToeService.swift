import Foundation
import GameServices
import Games
import Gateway
import Hummingbird
import Logging
import QueueListen
import RedisDC
import ServiceLifecycle

/// Tic-tac-toe: whoever opens the page plays against somebody else who is there.
///
/// Players and matches are objects of one presence bucket. A player's objects leave when the last page is closed, or a
/// while after the node that serves the player has died, unless another node serves the player by then. A move is an
/// update of the match at the version that was read, so no move is lost or played twice, whichever node it comes to.
///
/// Each node follows the bucket, and sends the players whom it serves what they see after a change: the whole board, so a
/// message that is late or repeated does no harm.
actor TicTacToeService: Service {
    private static let messageType = "tictactoe"
    /// How long a player may be away: the time in which a page is loaded again, or connects to another node.
    private static let grace = Duration.seconds(3)

    private let bucket: PresenceBucket
    private let office: PostOffice
    /// Held while a match begins, so that two nodes do not choose the same opponent.
    private let matchmaking: DistributedMutex
    private let logger: Logger
    private var lobby = TicTacToeLobby()
    /// The connections of the players whom this node serves; each ends its stream when it is lost.
    private var connections: [String: [PresenceOwner: AsyncStream<Void>.Continuation]] = [:]
    /// What is to be done for players of this node after a change.
    private let views = Worklist()
    private let offers = Worklist()

    init(presence: Presence, office: PostOffice, coordinator: Coordinator, logger: Logger) throws {
        bucket = try presence.bucket("tictactoe")
        self.office = office
        matchmaking = try coordinator.mutex("tictactoe")
        self.logger = logger
    }

    // MARK: Calls

    private struct Move: Codable { var match: String, cell: Int, id: String }
    private struct Again: Codable { var match: String }
    private struct Done: Codable { var done = true }

    nonisolated func addCalls<Context: RequestContext>(_ gateway: Gateway, _ router: Router<Context>) {
        gateway.addCall("/tictactoe/move", to: router) { (move: Move, caller) in
            try await answering {
                try await self.change("match:" + move.match, TicTacToeLobby.Match.self) { match in
                    guard let mark = match.mark(of: caller.user) else {
                        throw CallRefusal("no-match", "not your match")
                    }
                    return try match.play(move.cell, as: mark, id: move.id)
                }
                return Done()
            }
        }
        gateway.addCall("/tictactoe/again", to: router) { (again: Again, caller) in
            try await answering {
                try await self.change("player:" + caller.user, TicTacToeLobby.Player.self) { player in
                    guard player.finished != again.match else { return false }
                    player.finished = again.match
                    return true
                }
                return Done()
            }
        }
    }

    /// Changes an object as it is now: if another change comes in between, from the new state.
    ///
    /// - Parameter body: returns whether it has changed the object.
    private nonisolated func change<Value: Codable & Sendable>(
        _ key: String, _ type: Value.Type, _ body: @Sendable (inout Value) throws -> Bool
    ) async throws {
        while true {
            guard let object = try await bucket.object(key) else {
                throw CallRefusal("no-match", "the match has ended: somebody has left")
            }
            var value = try JSONDecoder().decode(type, from: Data(object.value))
            guard try body(&value) else { return }
            do {
                try await bucket.update(key, Array(try JSONEncoder().encode(value)), version: object.version)
                return
            } catch let error as PresenceError {
                guard error.code == .changed else { throw error }
            }
        }
    }

    // MARK: Players of this node

    /// Keeps a player present while a page is connected to this node.
    func serve(_ caller: Caller) async {
        while !Task.isCancelled {
            do {
                let owner = try await bucket.connect(user: caller.user, client: caller.device)
                let (lost, continuation) = AsyncStream<Void>.makeStream()
                connections[caller.user, default: [:]][owner] = continuation
                await present(owner, until: lost)
                connections[caller.user]?[owner] = nil
                if connections[caller.user]?.isEmpty == true { connections[caller.user] = nil }
                try await bucket.disconnect(owner)
            } catch { await pause(after: error, "a player cannot be present") }
        }
    }

    private func present(_ owner: PresenceOwner, until lost: AsyncStream<Void>) async {
        do {
            let player = try JSONEncoder().encode(TicTacToeLobby.Player())
            try await bucket.put(
                "player:" + owner.user, Array(player), owner: owner, scope: .user, grace: Self.grace, onlyNew: true)
        } catch let error as PresenceError where error.code == .taken {
            // The player has connected again in time: the object has stayed.
        } catch { return await pause(after: error, "a player cannot be put") }
        // What came before this connection may have been sent by nobody.
        attend([owner.user])
        for await _ in lost {}
    }

    private func pause(after error: any Error, _ text: Logger.Message) async {
        guard !Task.isCancelled else { return }
        logger.notice(text, metadata: ["error": "\(error)"])
        try? await Task.sleep(for: .seconds(1))
    }

    // MARK: The bucket

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.follow() }
                group.addTask { await self.endLostConnections() }
                group.addTask { await self.work(on: self.views) { try await self.sendView(to: $0) } }
                group.addTask { await self.work(on: self.offers) { try await self.offerMatch(to: $0) } }
            }
        }
    }

    private func follow() async {
        while !Task.isCancelled {
            do {
                for try await event in bucket.changes() { apply(event) }
            } catch { await pause(after: error, "the lobby cannot be followed") }
        }
    }

    private func endLostConnections() async {
        while !Task.isCancelled {
            do {
                for await loss in try await bucket.losses() {
                    for owner in loss.owners { connections[owner.user]?[owner]?.finish() }
                }
                return
            } catch { await pause(after: error, "lost players cannot be noticed") }
        }
    }

    private func apply(_ event: PresenceEvent) {
        switch event {
        case .gap: break
        case .snapshot(let snapshot):
            lobby = TicTacToeLobby(snapshot)
            attend(Set(connections.keys))
        case .change(let change):
            switch change.kind {
            case .put(let object, _): attend(lobby.set(object.key, to: object.value))
            case .left(let leave): attend(lobby.set(leave.key, to: nil))
            }
        }
    }

    private func attend(_ players: Set<String>) {
        let served = players.intersection(connections.keys)
        views.add(served)
        offers.add(served)
    }

    private func work(on list: Worklist, _ body: (_ player: String) async throws -> Void) async {
        for await player in list {
            do { try await body(player) } catch {
                list.add([player])
                await pause(after: error, "a player must wait")
            }
        }
    }

    private func sendView(to player: String) async throws {
        // A newer view replaces one that no page has read.
        let message = try Message(
            page: lobby.view(of: player), type: Self.messageType, ttl: .seconds(60), collapseKey: Self.messageType)
        try await office.send(message, to: player)
    }

    /// Begins a match of a player of this node with anybody who is free. The players learn of it by the change.
    private func offerMatch(to player: String) async throws {
        guard !lobby.opponents(for: player).isEmpty || !lobby.endedMatches(of: player).isEmpty else { return }
        try await matchmaking.withLock(timeout: .seconds(10)) { _ in
            let snapshot = try await bucket.snapshot()
            let lobby = TicTacToeLobby(snapshot)
            guard let owner = connections[player]?.keys.first else { return }
            for match in lobby.endedMatches(of: player) { try await bucket.remove("match:" + match, owner: owner) }
            guard let opponent = lobby.opponents(for: player).randomElement() else { return }
            let match = TicTacToeLobby.Match(cross: player, circle: opponent)
            // A later match has a greater id: the versions of a bucket only grow.
            let id = String(format: "%016d-%08x", snapshot.position.version, UInt32.random(in: .min ... .max))
            try await bucket.put(
                "match:" + id, Array(try JSONEncoder().encode(match)), owner: owner, scope: .user, grace: Self.grace,
                onlyNew: true)
        }
    }
}

extension TicTacToeLobby {
    /// The lobby in a snapshot of the bucket.
    init(_ snapshot: PresenceSnapshot) {
        self.init()
        for object in snapshot.objects { set(object.key, to: object.value) }
    }

    /// Sets or removes the player or match with this key.
    ///
    /// - Returns: the players whose view may have changed.
    @discardableResult
    mutating func set(_ key: String, to value: [UInt8]?) -> Set<String> {
        func decoded<Value: Decodable>(_ type: Value.Type) -> Value? {
            value.flatMap { try? JSONDecoder().decode(type, from: Data($0)) }
        }
        guard let colon = key.firstIndex(of: ":") else { return [] }
        let name = String(key[key.index(after: colon)...])
        switch key[..<colon] {
        case "player": return set(player: name, to: decoded(Player.self))
        case "match": return set(match: name, to: decoded(Match.self))
        default: return []
        }
    }
}
