/// The players who are present, and the matches between them.
///
/// Players and matches are objects of a presence bucket, so each node has a copy of this lobby, and all copies go through
/// the same states. A match lasts while both of its players are present and neither has a newer match. So a node needs
/// nothing but this to decide, and whatever order objects come and go in, no player is in two matches.
public struct TicTacToeLobby: Lobby, Hashable {
    /// A player who is present.
    public struct Player: Sendable, Hashable, Codable {
        /// The last match of which the player has seen the end.
        public var finished: String?

        /// Creates a player.
        public init(finished: String? = nil) { self.finished = finished }
    }

    /// A match of two players.
    public struct Match: Sendable, Hashable, Codable {
        /// The names of the players by mark: cross, then circle.
        public var players: [String]
        /// The game.
        public private(set) var game: TicTacToe
        /// The id of each player's last move, by which a repeated call is recognized.
        public private(set) var lastMoves: [String: String] = [:]

        /// A match that begins.
        public init(cross: String, circle: String) { (players, game) = ([cross, circle], TicTacToe()) }

        /// The mark of a player; `nil` for a user who does not play in this match.
        public func mark(of player: String) -> TicTacToe.Mark? {
            players.firstIndex(of: player).map { TicTacToe.Mark.allCases[$0] }
        }

        /// The opponent of a player.
        public func opponent(of player: String) -> String { players[players[0] == player ? 1 : 0] }

        /// Plays a move.
        ///
        /// - Parameter id: the id of the move.
        /// - Returns: whether the match has changed; `false` for the player's last move again.
        public mutating func play(_ cell: Int, as mark: TicTacToe.Mark, id: String) throws(TicTacToe.IllegalMove)
            -> Bool
        {
            let player = players[mark == .cross ? 0 : 1]
            guard lastMoves[player] != id else { return false }
            try game.mark(cell, as: mark)
            lastMoves[player] = id
            return true
        }
    }

    /// The view of one player.
    public struct View: Sendable, Hashable, Codable {
        /// The id of the match; `nil` while the player waits for an opponent. Then the rest is `nil` too.
        public var match: String?
        public var opponent: String?
        public var mark: TicTacToe.Mark?
        /// The cells by rows: `x`, `o` or `.`.
        public var cells: String?
        /// Whether it is the player's turn.
        public var isNext: Bool?
        /// `won`, `lost` or `drawn`; `nil` while the match lasts.
        public var result: String?
        /// The cells that won.
        public var line: [Int]?

        /// The view of a player who waits.
        public init() {}
    }

    /// The players by name.
    public private(set) var players: [String: Player] = [:]
    /// The matches by id. A later match has a greater id.
    public private(set) var matches: [String: Match] = [:]
    private var matchesOfPlayers: [String: Set<String>] = [:]

    public init() {}

    public static var newPlayer: [UInt8] { Array("{}".utf8) }

    @discardableResult
    public mutating func set(_ key: String, to value: [UInt8]?) -> Set<String> {
        let (kind, name) = Self.parts(of: key)
        return switch kind {
        case "player": set(player: name, to: Self.decode(Player.self, value))
        case "match": set(match: name, to: Self.decode(Match.self, value))
        default: []
        }
    }

    /// Sets or removes a player.
    ///
    /// - Returns: the players whose view may have changed.
    @discardableResult
    public mutating func set(player name: String, to player: Player?) -> Set<String> {
        players[name] = player
        return (matchesOfPlayers[name] ?? []).reduce(into: [name]) { $0.formUnion(matches[$1]?.players ?? []) }
    }

    /// Sets or removes a match.
    ///
    /// - Returns: the players whose view may have changed.
    @discardableResult
    public mutating func set(match id: String, to match: Match?) -> Set<String> {
        let concerned = Set((matches[id]?.players ?? []) + (match?.players ?? []))
        // The end or the beginning of a match can end or begin an older one of its players.
        let others = concerned.flatMap { matchesOfPlayers[$0] ?? [] }.flatMap { matches[$0]?.players ?? [] }
        for player in matches[id]?.players ?? [] {
            matchesOfPlayers[player]?.remove(id)
            if matchesOfPlayers[player]?.isEmpty == true { matchesOfPlayers[player] = nil }
        }
        matches[id] = match
        for player in match?.players ?? [] { matchesOfPlayers[player, default: []].insert(id) }
        return concerned.union(others)
    }

    /// Whether both players are in a match.
    private func lasts(_ id: String, _ match: Match) -> Bool {
        match.players.allSatisfy { players[$0] != nil && matchesOfPlayers[$0]?.max() == id }
    }

    /// The match that a player plays in, or sees the end of.
    public func match(of player: String) -> (id: String, match: Match)? {
        guard let id = matchesOfPlayers[player]?.max(), let match = matches[id], lasts(id, match),
            match.game.outcome == nil || players[player]?.finished != id
        else { return nil }
        return (id, match)
    }

    /// Whether a match with this player may begin.
    public func isFree(_ player: String) -> Bool { players[player] != nil && match(of: player) == nil }

    /// The players with whom a match of a free player may begin.
    public func opponents(for player: String) -> [String] {
        isFree(player) ? players.keys.filter { $0 != player && isFree($0) } : []
    }

    /// Whether something is to be done for a match of this player to begin.
    public func wantsMatch(_ player: String) -> Bool {
        !opponents(for: player).isEmpty || !endedMatches(of: player).isEmpty
    }

    /// The matches of a player with the cross that neither player sees any more.
    public func endedMatches(of player: String) -> [String] {
        (matchesOfPlayers[player] ?? []).filter { id in
            guard let match = matches[id], match.players[0] == player else { return false }
            return !match.players.contains { self.match(of: $0)?.id == id }
        }
    }

    /// The view of one player.
    public func view(of player: String) -> View {
        var view = View()
        guard let (id, match) = match(of: player), let mark = match.mark(of: player) else { return view }
        (view.match, view.opponent, view.mark) = (id, match.opponent(of: player), mark)
        view.cells = String(match.game.description.suffix(9))
        view.isNext = match.game.outcome == nil && match.game.next == mark
        switch match.game.outcome {
        case .won(let winner, let line): (view.result, view.line) = (winner == mark ? "won" : "lost", line)
        case .drawn: view.result = "drawn"
        case nil: break
        }
        return view
    }
}
