// The verdict as text.
import Verification

/// A table of the promises, and what happened.
struct VerdictText {
    let verdict: Verdict

    var text: String {
        var table = TextTable([
            .left("promise"), .right("checked"), .right("announced"), .right("undecided"), .right("violated"),
            .left("verdict"),
        ])
        for row in verdict.promises {
            table.add([
                row.sentence, "\(row.checks)", "\(row.announced)", "\(row.undecided)", "\(row.violations)",
                row.result.rawValue,
            ])
        }
        let numbers = verdict.statistics
        var lines = table.lines
        lines += [
            "",
            "\(numbers.operations) operations, \(numbers.failures) failed calls, \(numbers.failovers) failovers, "
                + "\(numbers.kills) killed processes",
            "longest time without service: \(numbers.longestWithoutService) s",
            "announced losses: \(numbers.claimsLost) leases, \(numbers.sessionsLost) sessions, "
                + "\(numbers.dataLost) times data, \(numbers.gaps) gaps in mailboxes",
            "operations that were carried out again: \(numbers.repaired)",
            "overlaps of holders: \(verdict.overlaps)",
        ]
        if !verdict.violations.isEmpty { lines += [""] + verdict.violations.map { "violation: \($0)" } }
        return (lines + ["", "verdict: \(verdict.result.rawValue)"]).joined(separator: "\n")
    }
}
