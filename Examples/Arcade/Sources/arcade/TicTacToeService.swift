import Foundation
import GameServices
import Games
import Gateway
import Hummingbird
import Logging
import QueueListen
import RedisDC

/// Tic-tac-toe: a player who opens the page plays against another one whose page is open.
struct TicTacToeService: Sendable {
    let room: Room<TicTacToeLobby>

    init(
        presence: Presence, office: PostOffice, coordinator: Coordinator, grace: Duration, logger: Logger
    ) throws {
        // Held while a match begins, so that two nodes do not choose the same opponent.
        let matchmaking = try coordinator.mutex("tictactoe")
        room = try Room("tictactoe", presence: presence, office: office, grace: grace, logger: logger) {
            room, player, owner in
            try await Self.offerMatch(to: player, owner, in: room, matchmaking)
        }
    }

    // MARK: Calls

    private struct Move: Codable { var match: String, cell: Int, id: String }
    private struct Again: Codable { var match: String }
    private struct Done: Codable { var done = true }

    func addCalls<Context: RequestContext>(_ gateway: Gateway, _ router: Router<Context>) {
        gateway.addCall("/tictactoe/move", to: router) { (move: Move, caller) in
            try await answering {
                guard (1...64).contains(move.id.utf8.count) else { throw CallRefusal("id", "an id has 1 to 64 bytes") }
                try await room.change("match:" + move.match, TicTacToeLobby.Match.self) { match in
                    guard let mark = match.mark(of: caller.user) else {
                        throw CallRefusal("no-match", "this is not your match")
                    }
                    return try match.play(move.cell, as: mark, id: move.id)
                }
                return Done()
            }
        }
        gateway.addCall("/tictactoe/again", to: router) { (again: Again, caller) in
            try await answering {
                try await room.change("player:" + caller.user, TicTacToeLobby.Player.self) { player in
                    guard player.finished != again.match else { return false }
                    player.finished = again.match
                    return true
                }
                return Done()
            }
        }
    }

    // MARK: Matches

    /// Begins a match of a free player of this node with any free player. Both receive it by the change.
    private static func offerMatch(
        to player: String, _ owner: PresenceOwner, in room: Room<TicTacToeLobby>, _ matchmaking: DistributedMutex
    ) async throws {
        guard await room.lobby.wantsMatch(player) else { return }
        try await matchmaking.withLock(timeout: .seconds(10)) { _ in
            let snapshot = try await room.bucket.snapshot()
            let lobby = TicTacToeLobby(snapshot)
            for match in lobby.endedMatches(of: player) { try await room.bucket.remove("match:" + match, owner: owner) }
            guard let opponent = lobby.opponents(for: player).randomElement() else { return }
            // A later match has a greater id: the versions of a bucket only grow.
            let id = String(format: "%016d-%08x", snapshot.position.version, UInt32.random(in: .min ... .max))
            try await room.put("match:" + id, TicTacToeLobby.Match(cross: player, circle: opponent), owner: owner)
        }
    }
}
