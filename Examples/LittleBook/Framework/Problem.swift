// What a problem of the book is: who plays, what each does, and what must be true of the log.

/// The chapters, as the book has them.
public enum Chapter: String, Sendable, CaseIterable {
    case basics = "Basic patterns"
    case classical = "Classical problems"
    case lessClassical = "Less classical problems"
    case notSoClassical = "Not-so-classical problems"
    case notRemotelyClassical = "Not remotely classical problems"
}

/// A problem and its solution. `redisdc book NAME` runs it with a process for each player.
public protocol Problem: Sendable {
    /// What it is called on the command line.
    var name: String { get }
    /// In one line.
    var title: String { get }
    var chapter: Chapter { get }
    /// With how many processes it is run unless told otherwise; at least 3.
    var processes: Int { get }
    /// How many it takes at least.
    var minProcesses: Int { get }

    /// Who plays when there are so many processes.
    func cast(_ processes: Int) -> [Role]

    /// What must be true, for any beginning of a log: the run ends when everyone has done their rounds, and the others may be
    /// anywhere then.
    func check(_ log: Log) -> [Invariant]
}

extension Problem {
    public var minProcesses: Int { 3 }
}

/// A part that one or more processes play.
public struct Role: Sendable {
    public var name: String
    public var count: Int
    /// The event that ends a round of this role; `nil` for one that only serves the others and has no rounds of its own.
    public var roundEnd: String?
    /// What such a process does. It returns when it has done its rounds, or goes on until the run is over.
    public var play: @Sendable (Player) async throws -> Void

    public init(
        _ name: String, _ count: Int, roundEnd: String? = nil,
        play: @escaping @Sendable (Player) async throws -> Void
    ) {
        (self.name, self.count, self.roundEnd, self.play) = (name, count, roundEnd, play)
    }

    /// `reader-1`, `reader-2`, …
    public var players: [String] { (1...max(1, count)).map { "\(name)-\($0)" } }
}
