import Foundation
import LittleBook
import Testing

/// A forged log and the expected result of its problem's check. `Forged/PROBLEM.txt` contains those
/// of a problem:
///
///     players: a-1 b-1
///
///     refuse: a1 before b2
///     b-1 b2 1
///
///     accept: in this order
///     a-1 a1 1
///     b-1 b2 1
struct ForgedLog: Sendable, CustomTestStringConvertible {
    let problem: String
    /// The statement of the invariant that must be violated; `nil` if no invariant may be.
    let refused: String?
    let title: String
    let log: Log

    var testDescription: String { "\(problem), \(refused == nil ? "accept" : "refuse"): \(title)" }

    static func all(of problem: String) throws -> [ForgedLog] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("Forged/\(problem).txt")
        var players: [String] = []
        var logs: [ForgedLog] = []
        var heading: (isRefused: Bool, title: String)?
        var lines: [String] = []
        func close() {
            guard let heading else { return }
            logs.append(
                ForgedLog(
                    problem: problem, refused: heading.isRefused ? heading.title : nil, title: heading.title,
                    log: Log(lines: lines, players: players)))
            lines = []
        }
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init) {
            let parts = line.components(separatedBy: ": ")
            switch parts[0] {
            case "players": players = parts[1].split(separator: " ").map(String.init)
            case "refuse", "accept":
                close()
                heading = (parts[0] == "refuse", parts[1])
            default: lines.append(line)
            }
        }
        close()
        return logs
    }
}

/// Every invariant has a forged log that violates it, so that no check can pass always.
@Suite("Checks of the problems")
struct ForgedLogTests {
    @Test(
        "each invariant rejects its forged log, and correct logs are accepted", arguments: Book.problems.map(\.name)
    )
    func forged(_ name: String) throws {
        let problem = try #require(Book.problem(name))
        let logs = try ForgedLog.all(of: name)
        for forged in logs {
            let violated = problem.check(forged.log).filter { !$0.violations.isEmpty }
            if let statement = forged.refused {
                #expect(violated.map(\.statement).contains(statement), "\(forged.testDescription)")
            } else {
                #expect(violated.isEmpty, "\(forged.testDescription): \(violated.flatMap(\.violations))")
            }
        }
        let statements = Set(problem.check(Log(players: [])).map(\.statement))
        #expect(Set(logs.compactMap(\.refused)) == statements)
        #expect(logs.contains { $0.refused == nil })
    }

    @Test("an invariant does not hold for an empty log", arguments: Book.problems.map(\.name))
    func empty(_ name: String) throws {
        let problem = try #require(Book.problem(name))
        let players = problem.cast(problem.processes).flatMap(\.players)
        #expect(problem.check(Log(players: players)).allSatisfy { !$0.holds })
    }
}
