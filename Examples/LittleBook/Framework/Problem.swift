// A problem of the book: its roles, their programs, and the invariants of the log.

/// The chapters of the book.
public enum Chapter: String, Sendable, CaseIterable {
    case basics = "Basic patterns"
    case classical = "Classical problems"
    case lessClassical = "Less classical problems"
    case notSoClassical = "Not-so-classical problems"
    case notRemotelyClassical = "Not remotely classical problems"
}

/// A problem and its solution. `littlebook NAME` runs it with one process for each player.
public protocol Problem: Sendable {
    /// The name on the command line.
    var name: String { get }
    /// The statement of the problem in one line.
    var title: String { get }
    /// The chapter of the book.
    var chapter: Chapter { get }
    /// The default number of processes, at least 3.
    var processes: Int { get }
    /// The minimum number of processes. The default is 3.
    var minProcesses: Int { get }

    /// Returns the roles for a number of processes.
    func cast(_ processes: Int) -> [Role]

    /// Checks the invariants of a log.
    ///
    /// They must hold for every prefix of a correct log, because the run ends when all rounds are
    /// done, wherever the players are then.
    func check(_ log: Log) -> [Invariant]
}

extension Problem {
    /// 3 processes.
    public var minProcesses: Int { 3 }
}

/// A program that one or more processes run.
public struct Role: Sendable {
    /// The name, for instance `reader`.
    public var name: String
    /// The number of processes.
    public var count: Int
    /// The event that ends a round of this role; `nil` for a role that serves the others and has no
    /// rounds.
    public var roundEnd: String?
    /// The program. It returns when its rounds are done, or continues until the run is over.
    public var play: @Sendable (Player) async throws -> Void

    /// Creates a role.
    public init(
        _ name: String, _ count: Int, roundEnd: String? = nil,
        play: @escaping @Sendable (Player) async throws -> Void
    ) {
        (self.name, self.count, self.roundEnd, self.play) = (name, count, roundEnd, play)
    }

    /// The names of the players: `reader-1`, `reader-2`, ….
    public var players: [String] { (1...max(1, count)).map { "\(name)-\($0)" } }
}
