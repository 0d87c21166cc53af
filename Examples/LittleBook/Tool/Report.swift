import Foundation
import LittleBook

/// The result of a run: a diagram of the order of events, the invariants with numbers, and a
/// verdict.
struct Report {
    let problem: any Problem
    let run: Run
    let seed: UInt64?
    let log: Log
    let invariants: [Invariant]
    /// The reason why the run did not finish; `nil` if it did.
    let failure: String?
    /// The progress of each player that did not finish.
    let unfinished: [String]
    let duration: Duration

    private static let violationsShown = 5

    var isRight: Bool { failure == nil && !invariants.isEmpty && invariants.allSatisfy(\.holds) }

    private var verdict: String { isRight ? "right" : "WRONG" }
    private var seconds: Double { duration / .seconds(1) }
    private var kill: String {
        guard let seed else { return "" }
        let killed = log.entries.first { $0.event == Entry.killed }
        return ", \(killed.map { "\($0.player) killed and restarted" } ?? "no process killed"), --seed \(seed)"
    }
    private var numbers: String {
        "\(run.processes) processes, \(run.rounds) rounds each, \(log.entries.count) events in "
            + String(format: "%.2f s", seconds) + kill
    }

    /// The verdict in one line, followed by the faults.
    var summary: String {
        (["\(verdict)  \(problem.name): \(numbers)"] + faults.map { "    " + $0 }).joined(separator: "\n")
    }

    /// The whole report.
    var text: String {
        var lines = [problem.title, "", LogTimeline(log: log).text, ""]
        lines += invariants.map(\.sentence)
        lines += ["every process did \(run.rounds) rounds: \(failure == nil ? "yes" : "NO")"]
        lines += faults.isEmpty ? [] : [""] + faults
        return (lines + ["", "\(verdict): \(numbers)"]).joined(separator: "\n")
    }

    private var faults: [String] {
        var lines: [String] = []
        for invariant in invariants where !invariant.holds {
            lines.append(invariant.sentence)
            lines += invariant.violations.prefix(Self.violationsShown).map { "  " + $0 }
            let rest = invariant.violations.count - Self.violationsShown
            if rest > 0 { lines.append("  … \(rest) more") }
        }
        if let failure { lines.append(failure) }
        return lines + unfinished.map { "  " + $0 }
    }

    // MARK: JSON

    /// A problem in the list of all problems.
    struct Heading: Encodable {
        var problem: String
        var title: String
        var chapter: String

        init(_ problem: any Problem) {
            (self.problem, title, chapter) = (problem.name, problem.title, problem.chapter.rawValue)
        }
    }

    struct JSON: Encodable {
        struct CheckedInvariant: Encodable {
            var statement: String
            var holds: Bool
            var checked: Int
            var violations: [String]
        }
        var problem: String
        var right: Bool
        var processes: Int
        var rounds: Int
        var events: Int
        var seconds: Double
        var seed: UInt64?
        var invariants: [CheckedInvariant]
        var failure: String?
        var unfinished: [String]
    }

    var json: JSON {
        JSON(
            problem: problem.name, right: isRight, processes: run.processes, rounds: run.rounds,
            events: log.entries.count, seconds: seconds, seed: seed,
            invariants: invariants.map {
                .init(
                    statement: $0.statement, holds: $0.holds, checked: $0.checked,
                    violations: Array($0.violations.prefix(Self.violationsShown)))
            },
            failure: failure, unfinished: unfinished)
    }
}
