import ArgumentParser
import CommandLineTool
import Foundation
import Hiredis
import RedisDC

/// The `redisdc top` command.
struct Top: ReaderBoundCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the sessions and resources of a namespace, refreshed until interrupted.",
        discussion: """
            Redraws a terminal; prints the list repeatedly to anything else. The column "held" counts the permits that are \
            not available, whether leased or consumed. On a terminal, resources with waiters are bold, and those whose \
            longest wait exceeds a minute are red, unless NO_COLOR is set.
            """
    )
    .examples("redisdc top --sort held")
    @OptionGroup var engine: EngineOptions
    @Flag(help: "Print the list once.") var once = false
    @Option(help: "Seconds between two refreshes, at least 0.05.") var interval = 1.0
    @Option(help: "The column by which to sort: waiting, held, wait or name. All but name begin with the greatest.")
    var sort = ResourceOrder.waiting

    func validate() throws {
        guard interval >= 0.05, interval < 1e6 else {
            throw ValidationError("--interval must be a number of seconds, at least 0.05")
        }
    }

    func run() async throws {
        try await engine.withObserver { coordinator in
            try show(ResourceListReport(engine.namespace, try await coordinator.list(), sort))
            while !once {
                do { try await Task.sleep(for: .seconds(interval)) } catch { return }
                do {
                    try show(ResourceListReport(engine.namespace, try await coordinator.list(), sort))
                } catch let error as RedisDCError where error.code == .cancelled {
                    return
                } catch let error as RedisDCError where [.connectionLost, .notConnected].contains(error.code) {
                    // The next refresh tries again.
                    try show(ResourceListReport(engine.namespace, error: error.message))
                }
            }
        }
    }

    private func show(_ report: ResourceListReport) throws {
        let screen = Screen.current
        guard !once, !engine.global.json, let screen else {
            let text = report.lines(width: nil, height: nil).joined(separator: "\n")
            return try engine.global.report(once ? text : text + "\n", report)
        }
        let isColored = ProcessInfo.processInfo.environment["NO_COLOR"]?.isEmpty ?? true
        try screen.draw(report.lines(width: screen.columns, height: screen.rows, isColored: isColored))
    }
}

/// The orders in which `redisdc top` lists resources.
enum ResourceOrder: String, ExpressibleByArgument, CaseIterable {
    case waiting, held, wait, name
}

/// The resources of a namespace, as JSON and as text.
private struct ResourceListReport: Encodable {
    struct Resource: Encodable {
        /// Seconds of waiting that deserve attention.
        private static let longWait = 60.0

        var name: String
        var kind: String
        var permits: Int
        var available: Int
        var held: Int
        var waiting: Int
        /// In seconds; `nil` without waiters.
        var longestWait: Double?

        /// The escape sequence for its line on a terminal; `nil` for an ordinary one.
        var style: String? {
            guard waiting > 0 else { return nil }
            return (longestWait ?? 0) > Self.longWait ? "\u{1B}[1;31m" : "\u{1B}[1m"
        }

        /// Whether it comes before another one.
        func precedes(_ other: Resource, by order: ResourceOrder) -> Bool {
            let (mine, others) =
                switch order {
                case .waiting: ((Double(waiting), held), (Double(other.waiting), other.held))
                case .held: ((Double(held), waiting), (Double(other.held), other.waiting))
                case .wait: ((longestWait ?? -1, waiting), (other.longestWait ?? -1, other.waiting))
                case .name: ((0.0, 0), (0.0, 0))
                }
            return mine == others ? name < other.name : mine > others
        }
    }
    var namespace: String
    var sessions = 0
    var resources: [Resource] = []
    /// Damaged records: key and field.
    var damaged: [String] = []
    var error: String?

    init(_ namespace: String, error: String) {
        self.namespace = namespace
        self.error = error
    }

    init(_ namespace: String, _ list: ResourceList, _ order: ResourceOrder) {
        self.namespace = namespace
        sessions = list.sessions
        // The list is read in several steps, so a resource may occur twice.
        let found = Dictionary(list.resources.map { ($0.name, $0) }) { _, last in last }
        resources = found.values.map { resource in
            Resource(
                name: resource.name, kind: resource.kind.description, permits: resource.permits,
                available: resource.available, held: max(0, resource.permits - resource.available),
                waiting: resource.waiters,
                longestWait: resource.longestWait?.secondsToTheMillisecond)
        }
        damaged = Set(list.damaged).map { "\($0.key) \($0.field)" }.sorted()
        resources.sort { $0.precedes($1, by: order) }
    }

    /// - Parameters:
    ///   - width: the length at which lines are cut; `nil` for no limit.
    ///   - height: the maximum number of lines; `nil` for no limit.
    func lines(width: Int?, height: Int?, isColored: Bool = false) -> [String] {
        var headline = "\(namespace): \(sessions) sessions, \(resources.count) names"
        if let error { headline = "\(namespace): \(error)" }
        if !damaged.isEmpty { headline += ", \(damaged.count) damaged records (see redisdc doctor)" }
        guard !resources.isEmpty else { return [headline] }
        var table = TextTable([
            .left("name"), .left("kind"), .right("permits"), .right("available"), .right("held"), .right("waiting"),
            .right("longest wait"),
        ])
        // Four lines are for the headline, an empty line, the titles, and the number of resources not shown.
        let room = height.map { max(1, $0 - 4) } ?? resources.count
        for resource in resources.prefix(room) {
            table.add([
                resource.name, resource.kind, "\(resource.permits)",
                isOpen(available: resource.available) ? "open" : "\(resource.available)", "\(resource.held)",
                "\(resource.waiting)",
                resource.longestWait.map { Duration.seconds($0).readable } ?? "",
            ])
        }
        let missing = resources.count - room
        let lines = [headline, ""] + table.lines + (missing > 0 ? ["and \(missing) more"] : [])
        let styles = [nil, nil, "\u{1B}[4m"] + resources.prefix(room).map(\.style)
        return lines.enumerated().map { index, line in
            let text = String(line.prefix(width ?? .max))
            guard isColored, index < styles.count, let style = styles[index] else { return text }
            return style + text + "\u{1B}[0m"
        }
    }
}

/// The terminal on standard output.
private struct Screen {
    var rows: Int
    var columns: Int

    /// `nil` if standard output is not a terminal.
    static var current: Screen? {
        StandardOutput.terminalSize.map { Screen(rows: $0.rows, columns: $0.columns) }
    }

    /// Draws from the top left corner and clears the rest of the screen.
    func draw(_ lines: [String]) throws {
        let text = "\u{1B}[H" + lines.map { $0 + "\u{1B}[K" }.joined(separator: "\n") + "\u{1B}[J"
        try StandardOutput.write(line: text)
    }
}
