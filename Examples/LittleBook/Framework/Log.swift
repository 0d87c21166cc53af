// The log of a run: what everyone says they do, in the order in which Redis got to know it.

/// One line of the log.
public struct Entry: Sendable, Hashable {
    /// The server's clock, in microseconds.
    public var time = 0
    /// `reader-2`
    public var player: String
    /// One word.
    public var event: String
    /// Which round, item, boat or molecule.
    public var number: Int?
    /// Anything else.
    public var note = ""

    /// A process was killed: what it did ends here. Written by the runner when the process is certainly dead.
    public static let killed = "killed"
    /// The killed process is there again, and its former session is over: it counts nowhere, and what it held is free, or
    /// will be with the next heartbeat of anyone.
    public static let back = "back"

    /// - Parameter text: `reader-2 reads 7 the-rest-is-a-note`
    public init?(_ text: some StringProtocol, time: Int = 0) {
        let words = String(text).split(separator: " ", maxSplits: 2).map { String($0) }
        guard words.count >= 2 else { return nil }
        (self.time, player, event) = (time, words[0], words[1])
        let rest = (words.count > 2 ? words[2] : "").split(separator: " ", maxSplits: 1).map { String($0) }
        number = rest.first.flatMap { Int($0) }
        note = (number == nil ? rest : Array(rest.dropFirst())).joined(separator: " ")
    }

    /// `reader`
    public var role: String { String(player.prefix { $0 != "-" }) }
    /// 2 for `reader-2`.
    public var index: Int { Int(player.drop { $0 != "-" }.dropFirst()) ?? 0 }

    /// What follows the player's name.
    public var action: String {
        event + (number.map { " \($0)" } ?? "") + (note.isEmpty ? "" : " " + note)
    }
    public var text: String { "\(player) \(action)" }
}

/// What everyone did, in order.
public struct Log: Sendable {
    public private(set) var entries: [Entry] = []
    /// All who take part, whether they have written anything or not.
    public let players: [String]

    public init(players: [String]) { self.players = players }

    /// - Parameter lines: as in ``Entry/init(_:time:)``; `100 * reader-1 reads` is that a hundred times.
    public init(lines: [String], players: [String]) {
        self.players = players
        for line in lines {
            let words = line.split(separator: " ", maxSplits: 2)
            let isRepeated = words.count == 3 && words[1] == "*"
            guard let entry = Entry(isRepeated ? words[2] : line[...]) else { continue }
            entries += Array(repeating: entry, count: isRepeated ? Int(words[0]) ?? 1 : 1)
        }
    }

    public mutating func append(_ entry: Entry) { entries.append(entry) }

    /// How many play a role.
    public func count(of role: String) -> Int { players.count { $0.hasPrefix(role + "-") } }
}
