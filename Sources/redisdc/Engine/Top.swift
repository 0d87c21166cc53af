import ArgumentParser
import Foundation
import Hiredis
import RedisDC

struct Top: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show a namespace at work: sessions, and what is held and waited for, until interrupted.",
        discussion: """
            Redrawn on a terminal, printed again and again elsewhere. What has most waiters comes first. Held are the \
            permits that are not available, whether leased or taken for good.
            """)
    @OptionGroup var engine: EngineOptions
    @Flag(help: "Print it once.") var once = false
    @Option(help: "Seconds from one look to the next.") var interval = 1.0

    func validate() throws {
        guard interval >= 0.05, interval < 1e6 else {
            throw ValidationError("--interval is a number of seconds, at least 0.05")
        }
    }

    func run() async throws {
        try await engine.withObserver { coordinator in
            try show(ResourceListReport(engine.namespace, try await coordinator.list()))
            while !once {
                do { try await Task.sleep(for: .seconds(interval)) } catch { return }
                do {
                    try show(ResourceListReport(engine.namespace, try await coordinator.list()))
                } catch let error as RedisDCError where error.code == .cancelled {
                    return
                } catch let error as RedisDCError where [.connectionLost, .notConnected].contains(error.code) {
                    // It goes on when Redis is back.
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
        screen.draw(report.lines(width: screen.columns, height: screen.rows))
    }
}

/// A picture of a namespace.
private struct ResourceListReport: Encodable {
    struct Resource: Encodable {
        var name: String
        var kind: String
        var permits: Int
        var available: Int
        var held: Int
        var waiting: Int
        /// Seconds.
        var longestWait: Double?
    }
    var namespace: String
    var sessions = 0
    var resources: [Resource] = []
    var error: String?

    init(_ namespace: String, error: String) {
        self.namespace = namespace
        self.error = error
    }

    init(_ namespace: String, _ list: ResourceList) {
        self.namespace = namespace
        sessions = list.sessions
        // Reading in pieces may show one resource twice.
        let found = Dictionary(list.resources.map { ($0.name, $0) }) { _, last in last }
        resources = found.values.map { resource in
            Resource(
                name: resource.name, kind: resource.kind, permits: resource.permits,
                available: resource.available, held: max(0, resource.permits - resource.available),
                waiting: resource.waiters,
                longestWait: resource.longestWait?.secondsToTheMillisecond)
        }
        resources.sort { ($1.waiting, $1.held, $0.name) < ($0.waiting, $0.held, $1.name) }
    }

    /// - Parameters:
    ///   - width: lines are cut there; `nil` for no end.
    ///   - height: most lines; `nil` for no end.
    func lines(width: Int?, height: Int?) -> [String] {
        var headline = "\(namespace): \(sessions) sessions, \(resources.count) names"
        if let error { headline = "\(namespace): \(error)" }
        guard !resources.isEmpty else { return [headline] }
        var table = TextTable([
            .left("name"), .left("kind"), .right("permits"), .right("available"), .right("held"), .right("waiting"),
            .right("longest wait"),
        ])
        // The headline, an empty line, the titles, and the line that says how many are not shown.
        let room = height.map { max(1, $0 - 4) } ?? resources.count
        for resource in resources.prefix(room) {
            table.add([
                resource.name, resource.kind, "\(resource.permits)", "\(resource.available)", "\(resource.held)",
                "\(resource.waiting)",
                resource.longestWait.map { Duration.seconds($0).spoken } ?? "",
            ])
        }
        let missing = resources.count - room
        let lines = [headline, ""] + table.lines + (missing > 0 ? ["and \(missing) more"] : [])
        return lines.map { String($0.prefix(width ?? .max)) }
    }
}

/// The terminal on standard output.
private struct Screen {
    var rows: Int
    var columns: Int

    /// `nil` when standard output is something else.
    static var current: Screen? {
        var size = winsize()
        guard isatty(STDOUT_FILENO) == 1, ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 else { return nil }
        return Screen(rows: size.ws_row > 0 ? Int(size.ws_row) : 24, columns: size.ws_col > 0 ? Int(size.ws_col) : 80)
    }

    /// From the top left corner, wiping what was there.
    func draw(_ lines: [String]) {
        print("\u{1B}[H" + lines.map { $0 + "\u{1B}[K" }.joined(separator: "\n") + "\u{1B}[J")
        fflush(nil)
    }
}
