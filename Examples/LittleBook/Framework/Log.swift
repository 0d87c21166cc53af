// The log of a run: the actions of all players, in the order in which Redis received them.

/// An entry of the log.
public struct Entry: Sendable, Hashable {
    /// By the server's clock, in microseconds since 1970.
    public var time = 0
    /// The player that has written it, for instance `reader-2`.
    public var player: String
    /// The player's action, in one word.
    public var event: String
    /// The number of a round, item, boat or molecule.
    public var number: Int?
    /// Further details.
    public var note = ""

    /// The event that a player was killed. The runner writes it when the process is certainly dead;
    /// no later entry is of that life.
    public static let killed = "killed"
    /// The event that a killed player is back. Its former session has expired: it counts nowhere,
    /// and what it held is free, or will be with the next heartbeat of a live process.
    public static let back = "back"

    /// Parses an entry; `nil` if the text has fewer than two words.
    ///
    /// - Parameters:
    ///   - text: player, event, number and note, for instance `reader-2 reads 7
    ///     the-rest-is-a-note`.
    ///   - time: in microseconds since 1970.
    public init?(_ text: some StringProtocol, time: Int = 0) {
        let words = String(text).split(separator: " ", maxSplits: 2).map { String($0) }
        guard words.count >= 2 else { return nil }
        (self.time, player, event) = (time, words[0], words[1])
        let rest = (words.count > 2 ? words[2] : "").split(separator: " ", maxSplits: 1).map { String($0) }
        number = rest.first.flatMap { Int($0) }
        note = (number == nil ? rest : Array(rest.dropFirst())).joined(separator: " ")
    }

    /// The role of the player: `reader` for `reader-2`.
    public var role: String { String(player.prefix { $0 != "-" }) }
    /// The number of the player within its role: 2 for `reader-2`.
    public var index: Int { Int(player.drop { $0 != "-" }.dropFirst()) ?? 0 }

    /// The event, the number and the note.
    public var action: String {
        event + (number.map { " \($0)" } ?? "") + (note.isEmpty ? "" : " " + note)
    }
    /// The player and the action, as in ``init(_:time:)``.
    public var text: String { "\(player) \(action)" }
}

/// The entries of a run, in order.
public struct Log: Sendable {
    /// The entries, in the order of the server.
    public private(set) var entries: [Entry] = []
    /// All players of the run, also those without an entry.
    public let players: [String]

    /// Creates an empty log.
    public init(players: [String]) { self.players = players }

    /// Creates a log from text.
    ///
    /// - Parameters:
    ///   - lines: entries as in ``Entry/init(_:time:)``; `100 * reader-1 reads` is 100 such
    ///     entries.
    ///   - players: all players of the run.
    public init(lines: [String], players: [String]) {
        self.players = players
        for line in lines {
            let words = line.split(separator: " ", maxSplits: 2)
            let isRepeated = words.count == 3 && words[1] == "*"
            guard let entry = Entry(isRepeated ? words[2] : line[...]) else { continue }
            entries += Array(repeating: entry, count: isRepeated ? Int(words[0]) ?? 1 : 1)
        }
    }

    /// Appends an entry.
    public mutating func append(_ entry: Entry) { entries.append(entry) }

    /// The number of players of a role.
    public func count(of role: String) -> Int { players.count { $0.hasPrefix(role + "-") } }
}
