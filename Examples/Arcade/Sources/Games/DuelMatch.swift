/// A match of the duel, with the data by which its end is settled.
public struct DuelMatch: Sendable, Hashable, Codable {
    /// A match as one player sees it: without equations and points before the end.
    public struct View: Sendable, Hashable, Codable {
        public var match: String
        /// Grows with each change: a page ignores an older view.
        public var version: Int
        public var opponent: String
        /// Whether the opponent was chosen by chance.
        public var isRandom: Bool
        /// `make`, `solve`, `wait` or `over`.
        public var phase: String
        /// The number of the round, 0 or 1.
        public var round: Int
        public var selection: [String]
        /// The value to reach, for the solver.
        public var target: Double?
        /// After the end.
        public var result: Result?
    }

    /// The end of a match as a player sees it.
    public struct Result: Sendable, Hashable, Codable {
        /// `won`, `lost`, `drawn`, or `quit` if the match was not played to its end.
        public var outcome: String
        public var points: Int?
        public var opponentsPoints: Int?
        /// By how much the IQ has changed.
        public var change: Int
        /// The rounds with both equations.
        public var rounds: [Duel.Round]
    }

    /// The duel.
    public var duel: Duel
    /// The id of the call, or of the match of the matchmaker, that began it.
    public let beginning: String
    /// Whether the players were chosen by chance.
    public let isRandom: Bool
    /// The IQ of the players at the beginning, by which the change at the end is computed.
    public let iqs: [Int]
    /// The number of the match, greater than those of all earlier matches of either player.
    public let number: Int
    /// The ids of the players: the match does not count for another player who uses the name later.
    private let ids: [String?]

    /// A match that begins.
    ///
    /// - Parameter earlier: the last match of the same players.
    public init(
        _ players: [String], _ states: [DuelPlayer], beginning: String, isRandom: Bool, after earlier: DuelMatch? = nil,
        using generator: inout some RandomNumberGenerator
    ) {
        (self.beginning, self.isRandom, iqs) = (beginning, isRandom, states.map(\.iq))
        (number, ids) = ((states.map(\.lastMatch) + [earlier?.number ?? 0]).max()! + 1, states.map(\.id))
        duel = Duel(players: players, tiers: states.map(\.tier), toolbox: states[0].toolbox, using: &generator)
    }

    /// Records in the state of a player that the match has begun, and counts it if it has ended. It can be done again.
    ///
    /// - Returns: whether the state has changed; `nil` for another player who uses the name later.
    public func record(for name: String, in state: inout DuelPlayer) -> Bool? {
        guard hasPlayer(name, state) else { return nil }
        let opponent = duel.opponent(of: name)
        guard duel.ending != nil else { return state.begin(number, against: opponent) }
        let change = duel.changes(of: iqs)[duel.players[0] == name ? 0 : 1]
        return state.count(change, of: number, against: opponent)
    }

    /// Whether a player takes part, and not another one who has used the name.
    public func hasPlayer(_ name: String, _ state: DuelPlayer) -> Bool {
        zip(duel.players, ids).contains { $0 == name && $1 == state.id }
    }

    /// Returns the view of a player of the match.
    public func view(of player: String, match: String, version: Int) -> View {
        let place = duel.rounds.count - 1
        let round = duel.rounds[place]
        let isMaking = round.target == nil
        let phase = duel.ending != nil ? "over" : duel.next != player ? "wait" : isMaking ? "make" : "solve"
        var view = View(
            match: match, version: version, opponent: duel.opponent(of: player), isRandom: isRandom, phase: phase,
            round: place, selection: round.selection)
        if phase == "solve" { view.target = round.target }
        guard duel.ending != nil else { return view }
        let change = duel.changes(of: iqs)[duel.players[0] == player ? 0 : 1]
        let (own, other) = (duel.points(of: player), duel.points(of: duel.opponent(of: player)))
        let outcome =
            duel.ending == .quit
            ? "quit" : (own ?? 0) == (other ?? 0) ? "drawn" : (own ?? 0) > (other ?? 0) ? "won" : "lost"
        view.result = Result(
            outcome: outcome, points: own, opponentsPoints: other, change: change, rounds: duel.rounds)
        return view
    }
}
