/// A match: the players whose tickets were taken together.
public struct Match: Sendable, Hashable, Codable {
    /// One player of a match.
    public struct Player: Sendable, Hashable, Codable {
        /// The player's name, which is also the name of the mailbox.
        public var name: String
        /// The player's ticket.
        public var ticket: String
        /// The rating that the ticket was enqueued with.
        public var rating: Int
    }

    /// The id of the match, which is the same for all players.
    public var id: String
    /// The name of the matchmaker.
    public var matchmaker: String
    /// The players. The first is the one whose ticket completed the match; the others follow, the
    /// longest waiting first.
    public var players: [Player]
}

/// The message that a player gets when a ticket ends without a match: the type is
/// ``Matchmaker/endedType``.
public struct EndedTicket: Sendable, Hashable, Codable {
    /// The reason for the end.
    public enum Reason: String, Sendable, Codable {
        /// The ticket's timeout has passed.
        case timedOut
        /// The node that enqueued the ticket is dead. Enqueue again at another one.
        case lost
    }

    /// The ticket.
    public var ticket: String
    /// The name of the matchmaker.
    public var matchmaker: String
    /// The player's name.
    public var player: String
    /// The reason for the end.
    public var reason: Reason
}

/// The state of a ticket. All states except `waiting` are final.
public enum TicketState: Sendable, Hashable {
    /// It waits for a match.
    case waiting
    /// It is part of a match.
    case matched(Match)
    /// It was cancelled.
    case cancelled
    /// Its timeout has passed without a match.
    case timedOut
    /// Its node died.
    case lost
}

/// The stored end of tickets.
struct TicketOutcome: Sendable, Hashable {
    var id: String
    /// The state that the tickets have now.
    var reason: String
    var players: [Match.Player]

    /// Parses an outcome, see Lua/match_tickets.lua: lines for id, reason, and ticket, player and rating of each.
    init?(_ text: String?) {
        guard let text, text.last == "\n" else { return nil }
        let lines = text.dropLast().split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard lines.count >= 5, lines.count % 3 == 2 else { return nil }
        (id, reason, players) = (lines[0], lines[1], [])
        for at in stride(from: 2, to: lines.count, by: 3) {
            guard let rating = Int(lines[at + 2]) else { return nil }
            players.append(Match.Player(name: lines[at + 1], ticket: lines[at], rating: rating))
        }
    }

    func match(of matchmaker: String) -> Match { Match(id: id, matchmaker: matchmaker, players: players) }
}

extension TicketState {
    /// Creates a state from a reply of a script: the state's word, and the outcome or nothing.
    init?(_ word: String?, _ outcome: String?, matchmaker: String) {
        switch word {
        case "waiting": self = .waiting
        case "matched":
            guard let outcome = TicketOutcome(outcome) else { return nil }
            self = .matched(outcome.match(of: matchmaker))
        case "cancelled": self = .cancelled
        case "timedOut": self = .timedOut
        case "lost": self = .lost
        default: return nil
        }
    }
}
