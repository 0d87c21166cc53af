import Foundation
import GameServices
import Games
import Gateway
import Logging
import QueueListen
import ServiceLifecycle

/// A game whose players see one another: a player is in the room while a page is open.
///
/// Players, and what they do together, are objects of one presence bucket. A player's objects leave when the last page is
/// closed, or a while after the node that serves the player has died, unless another node serves the player by then. What
/// players do is an update of an object at the version that was read, so nothing is lost or done twice, whichever node a
/// call comes to.
///
/// Each node follows the bucket, and sends the players whom it serves their complete views after a change, so a message
/// that is late, missing or repeated does no harm.
actor Room<GameLobby: Lobby>: Service {
    /// Acts for a player of this node after a change, with the connection on which the player's objects depend. If it
    /// throws, it is called again.
    typealias Attend = @Sendable (Room, _ player: String, _ owner: PresenceOwner) async throws -> Void

    nonisolated let bucket: PresenceBucket
    private let office: PostOffice
    private let logger: Logger
    /// How long a player may be away: the time in which a page is loaded again, or connects to another node.
    private let grace: Duration
    private let attend: Attend
    /// This node's copy of the bucket.
    private(set) var lobby = GameLobby()
    /// The connections of the players whom this node serves. The end of its stream ends a connection.
    private var connections: [String: [PresenceOwner: AsyncStream<Void>.Continuation]] = [:]
    private let views = Worklist()
    private let attended = Worklist()
    private var alarms: [String: Task<Void, Never>] = [:]

    /// - Parameters:
    ///   - name: of the bucket, of the messages, and the beginning of the names of devices.
    ///   - grace: the time for which a player may be away: that in which a page is loaded again, or connects to another
    ///     node.
    init(
        _ name: String, presence: Presence, office: PostOffice, grace: Duration, logger: Logger,
        attend: @escaping Attend
    ) throws {
        bucket = try presence.bucket(name)
        self.office = office
        self.grace = grace
        self.logger = logger
        self.attend = attend
    }

    // MARK: Objects

    /// Changes an object as it is now: if another change comes in between, from the new state.
    ///
    /// - Parameter body: returns whether it has changed the object.
    /// - Throws: a refusal if there is no such object, and what `body` throws.
    nonisolated func change<Value: Codable & Sendable>(
        _ key: String, _ type: Value.Type, _ body: (inout Value) throws -> Bool
    ) async throws {
        while true {
            guard let object = try await bucket.object(key) else {
                throw CallRefusal("gone", "this has ended: somebody has left")
            }
            var value = try JSONDecoder().decode(type, from: Data(object.value))
            guard try body(&value) else { return }
            do {
                try await bucket.update(key, Array(try JSONEncoder().encode(value)), version: object.version)
                return
            } catch let error as GameServiceError {
                guard error.code == .changed else { throw error }
            }
        }
    }

    /// Puts a new object, which leaves with its owner.
    nonisolated func put(_ key: String, _ value: some Encodable, owner: PresenceOwner) async throws {
        try await bucket.put(
            key, Array(try JSONEncoder().encode(value)), owner: owner, scope: .user, grace: grace, onlyNew: true)
    }

    // MARK: Players of this node

    /// Keeps a player in the room while a page is connected to this node.
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
            try await bucket.put(
                "player:" + owner.user, GameLobby.newPlayer, owner: owner, scope: .user, grace: grace,
                onlyNew: true)
        } catch  where error.code == .taken {
            // The player has connected again in time: the object has stayed.
        } catch { return await pause(after: error, "a player cannot be put") }
        // No node may have sent the changes that came before this connection.
        attend(to: [owner.user])
        for await _ in lost {}
    }

    private func pause(after error: any Error, _ text: Logger.Message) async {
        guard !Task.isCancelled else { return }
        logger.notice(text, metadata: ["room": "\(bucket.name)", "error": "\(error)"])
        try? await Task.sleep(for: .seconds(1))
    }

    // MARK: The bucket

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.follow() }
                group.addTask { await self.endLostConnections() }
                group.addTask { await self.work(on: self.views) { try await self.sendView(to: $0) } }
                group.addTask {
                    await self.work(on: self.attended) {
                        if let owner = await self.owner(of: $0) { try await self.attend(self, $0, owner) }
                    }
                }
            }
        }
    }

    private func follow() async {
        while !Task.isCancelled {
            do {
                for try await event in bucket.changes() { apply(event) }
            } catch { await pause(after: error, "the room cannot be followed") }
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
            lobby = GameLobby(snapshot)
            attend(to: Set(connections.keys))
        case .change(let change):
            switch change.kind {
            case .put(let object, _): attend(to: lobby.set(object.key, to: object.value))
            case .left(let leave): attend(to: lobby.set(leave.key, to: nil))
            }
        }
    }

    /// Changes this node's copy of the bucket, for example because a time has come.
    ///
    /// - Parameter body: returns the players whose views have changed.
    func changeLobby(_ body: (inout GameLobby) -> Set<String>) { attend(to: body(&lobby)) }

    /// Sends these players their views, and calls `attend` for them, as far as this node serves them.
    func attend(to players: Set<String>) {
        let served = players.intersection(connections.keys)
        views.add(served)
        attended.add(served)
    }

    /// Does the same for one player after a while, instead of a time that was set before.
    func attend(to player: String, after delay: Duration) {
        alarms[player]?.cancel()
        alarms[player] = Task {
            do { try await Task.sleep(for: delay) } catch { return }
            alarms[player] = nil
            attend(to: [player])
        }
    }

    private func owner(of player: String) -> PresenceOwner? { connections[player]?.keys.first }

    private func work(on list: Worklist, _ body: @Sendable (_ player: String) async throws -> Void) async {
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
            page: lobby.view(of: player), type: bucket.name, ttl: .seconds(60), collapseKey: bucket.name)
        try await office.send(message, to: player)
    }
}

extension Lobby {
    /// The lobby in a snapshot of the bucket.
    init(_ snapshot: PresenceSnapshot) {
        self.init()
        for object in snapshot.objects { set(object.key, to: object.value) }
    }
}
