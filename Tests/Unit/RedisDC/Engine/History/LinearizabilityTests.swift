// The checks of histories, applied to histories written by hand: each finds its fault and no other.
import TestHistory
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

/// A history in short form, one line for each call: `take - 10 20 f5`, and later `release 1 30 40`
/// for the first call.
private struct Script: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var lines: [String]
    var permits = 1
    /// A part of the message of the fault, or `nil` if the history is legal.
    var fault: String?

    /// The history in the format of the recorder.
    var history: History {
        var history = History()
        var text = ""
        for (number, line) in lines.enumerated() {
            let words = line.split(separator: " ").map(String.init)
            let (from, to) = (Int(words[2])! * 1_000_000, Int(words[3])! * 1_000_000)
            let rest = words.dropFirst(4)
            let claim = words[0] == "release" ? words[1] : "0"
            let count = rest.first { $0.hasPrefix("x") }.map { String($0.dropFirst()) } ?? "1"
            let fence = rest.first { $0.hasPrefix("f") }.map { String($0.dropFirst()) } ?? "0"
            let outcome =
                ["refused", "timedOut", "cancelled", "lost", "unknown"].first { rest.contains($0) } ?? "ok"
            text += "call 7 \(number + 1) \(from) \(number) \(words[0]) x \(count) \(claim) -\n"
            let value = rest.first { $0.hasPrefix("v") }.map { " " + $0.dropFirst() } ?? ""
            if to > 0 { text += "back 7 \(number + 1) \(to) \(outcome) \(fence)\(value)\n" }
            if let held = rest.first(where: { $0.hasPrefix("held") }) {
                text += "held 7 \(number + 1) \(Int(held.dropFirst(4))! * 1_000_000)\n"
            }
        }
        history.add(text)
        return history
    }
}

private let scripts: [Script] = [
    Script(testDescription: "one after the other", lines: ["take - 1 2 f1", "release 1 3 4", "take - 5 6 f2"]),
    Script(
        testDescription: "a grant that returns before the release does",
        lines: ["take - 1 2 f1", "release 1 3 8", "take - 2 6 f2"]
    ),
    Script(
        testDescription: "two holders", lines: ["take - 1 2 f1", "take - 3 4 f2"], fault: "no order"),
    Script(
        testDescription: "two holders, and the first releases later",
        lines: ["take - 1 2 f1", "take - 3 4 f2", "release 1 5 6"], fault: "no order"),
    Script(
        testDescription: "two bodies that run at a time",
        lines: ["take - 1 2 f1 held9", "release 1 3 4", "take - 5 6 f2 held8"],
        fault: "are held"),
    Script(
        testDescription: "a second release of a claim",
        lines: ["take - 1 2 f1", "release 1 3 4", "take - 5 6 f2", "release 1 7 8", "take - 9 10 f3"], fault: "no order"
    ),
    Script(
        testDescription: "a permit that did not exist", lines: ["wait - 1 2", "wait - 3 4"], fault: "no order"),
    Script(
        testDescription: "more permits consumed than existed", lines: ["wait - 1 2", "wait - 3 4"],
        fault: "consumed than existed"),
    Script(
        testDescription: "a permit of a later signal", lines: ["wait - 1 2", "wait - 3 4", "signal - 5 6"],
        fault: "no order"),
    Script(
        testDescription: "a permit of a signal in flight", lines: ["wait - 1 2", "wait - 3 6", "signal - 4 9"]),
    Script(
        testDescription: "a permit of a signal with an unknown outcome",
        lines: ["wait - 1 2", "signal - 3 4 unknown", "wait - 50 60"]),
    Script(
        testDescription: "two permits of one signal with an unknown outcome",
        lines: ["wait - 1 2", "signal - 3 4 unknown", "wait - 50 60", "wait - 70 80"], fault: "no order"),
    Script(
        testDescription: "a signal with an unknown outcome that did not run",
        lines: ["wait - 1 2", "signal - 3 4 unknown", "tryWait - 5 6 refused"]),
    Script(
        testDescription: "a batch that takes more permits than are free",
        lines: ["wait - 1 2 x2", "wait - 3 4 x2"], permits: 3, fault: "no order"),
    Script(
        testDescription: "a fence that decreases", lines: ["take - 1 2 f5", "release 1 3 4", "take - 5 6 f4"],
        fault: "came after"),
    Script(
        testDescription: "a fence that decreases among concurrent grants",
        lines: ["take - 1 2 f5", "release 1 3 6", "take - 1 7 f4"], fault: "no order"),
    Script(
        testDescription: "a first call that is granted late, with the highest fence",
        lines: ["take - 1 90 f9", "take - 2 3 f1", "release 2 4 5", "take - 6 7 f2", "release 4 8 9"]),
    Script(
        testDescription: "a fence that is granted twice", lines: ["take - 1 2 f5", "take - 1 2 f5"], permits: 2,
        fault: "granted twice"),
    Script(
        testDescription: "a cancelled wait that took a permit",
        lines: ["take - 1 2 f1", "take - 3 4 cancelled", "release 1 5 6", "tryTake - 7 8 refused"], fault: "no order"),
    Script(
        testDescription: "a refused try beside a waiter that is cancelled",
        lines: ["take - 1 2 f1", "take - 3 9 cancelled", "release 1 5 6", "tryTake - 7 8 refused"]),
    Script(
        testDescription: "a refused try after a cancel that exceeded settleTimeout",
        lines: ["take - 1 2 f1", "take - 3 900 cancelled", "release 1 5 6", "tryTake - 1000 1001 refused"]),
    Script(
        testDescription: "a try that does not overtake a waiter for more permits",
        lines: ["tryTake - 3 4 refused", "take - 1 9 f1 x2", "signal - 5 6"]),
    Script(
        testDescription: "a refused try with a free permit and no waiters", lines: ["tryTake - 1 2 refused"],
        fault: "no order"),
    Script(
        testDescription: "a lost lease that becomes free",
        lines: ["take - 1 2 f1", "release 1 3 4 lost", "take - 5 6 f2"]),
    Script(
        testDescription: "a lost lease that becomes free twice",
        lines: ["take - 1 2 f1", "release 1 3 4 lost", "take - 5 6 f2", "take - 7 8 f3"], fault: "no order"),
    Script(
        testDescription: "a killed process that took a permit",
        lines: ["take - 5 0", "tryTake - 60 61 refused"]),
    Script(
        testDescription: "a killed process that took no permit",
        lines: ["take - 5 0", "tryTake - 60 61 f1"]),
    Script(
        testDescription: "concurrent readers, then a writer",
        lines: ["take - 1 2 f1", "take - 1 3 f2", "release 1 4 5", "release 2 4 6", "take - 1 8 f3 x3"], permits: 3),
    Script(
        testDescription: "a writer beside a reader", lines: ["take - 1 2 f1", "take - 3 4 f2 x3"], permits: 3,
        fault: "no order"),
    Script(
        testDescription: "a latch that is passed after its countdowns",
        lines: ["pass - 1 9", "down - 2 3 v1", "down - 4 8 v0", "pass - 10 11", "down - 12 13 v0"], permits: 2),
    Script(
        testDescription: "a latch that is passed too early", lines: ["down - 1 2 v1", "pass - 3 4", "down - 5 6 v0"],
        permits: 2, fault: "no order"),
    Script(
        testDescription: "a countdown with an unknown outcome",
        lines: ["down - 1 2 v1", "down - 3 4 unknown", "pass - 5 6"], permits: 2),
    Script(
        testDescription: "two countdowns that return the same number", lines: ["down - 1 2 v1", "down - 3 4 v1"],
        permits: 2,
        fault: "no order"),
    Script(
        testDescription: "two generations of a barrier",
        lines: ["arrive - 1 3 v0", "arrive - 2 9 v1", "arrive - 4 9 v1024", "arrive - 5 8 v1025"], permits: 2),
    Script(
        testDescription: "a party that passes before the other arrives", lines: ["arrive - 1 3 v0", "arrive - 4 5 v1"],
        permits: 2, fault: "before all parties had arrived"),
    Script(
        testDescription: "a generation that opens before the previous one",
        lines: ["arrive - 5 8 v0", "arrive - 6 9 v1", "arrive - 1 3 v1024", "arrive - 2 4 v1025"], permits: 2,
        fault: "before all parties had arrived"),
    Script(
        testDescription: "two parties with the same arrival number", lines: ["arrive - 1 4 v0", "arrive - 2 3 v0"],
        permits: 2,
        fault: "too many"),
    Script(
        testDescription: "a party that timed out but was counted",
        lines: ["arrive - 1 4 v0", "arrive - 2 3 timedOut"], permits: 2, fault: "without reporting it"),
    Script(
        testDescription: "a party with an unknown outcome that was counted",
        lines: ["arrive - 1 4 v0", "arrive - 2 3 unknown"],
        permits: 2),
]

@Suite("Histories written by hand")
struct LinearizabilityTests {
    @Test("each history is judged", arguments: scripts)
    private func judged(_ script: Script) {
        let faults = script.history.faults(permits: ["x": script.permits])
        if let fault = script.fault {
            #expect(faults.contains { $0.contains(fault) }, "\(faults)")
        } else {
            #expect(faults.isEmpty, "\(faults)")
        }
    }

    @Test("a long history is judged, and one permit too many in it is found")
    func long() {
        for isWrong in [false, true] {
            var steps: [TimedStep<PermitModel.Step>] = []
            for round in 0..<2000 {
                // Six steps overlap at a time.
                let called = UInt64(round * 10)
                let step: PermitModel.Step =
                    round % 2 == 0
                    ? .signal(count: 1) : .take(claim: nil, count: 1, fence: nil, queues: true)
                steps.append(TimedStep(step: step, called: called, returned: called + 60 + UInt64(round * 7 % 13)))
            }
            if isWrong {
                steps.append(
                    TimedStep(
                        step: .take(claim: nil, count: 1, fence: nil, queues: true), called: 15_000, returned: 15_100))
            }
            let verdict = Linearizability.verdict(on: steps, of: PermitModel(permits: 0))
            if isWrong { #expect(verdict != .legal) } else { #expect(verdict == .legal) }
        }
    }

    @Test("more concurrent steps than can be searched give .tooWide")
    func tooWide() {
        let steps = (0..<65).map { index in
            TimedStep(step: PermitModel.Step.signal(count: 1), called: UInt64(index), returned: 1000)
        }
        guard case .tooWide = Linearizability.verdict(on: steps, of: PermitModel(permits: 0)) else {
            Issue.record("expected .tooWide for 65 concurrent steps")
            return
        }
        let few = Array(steps.prefix(30))
        guard case .tooWide = Linearizability.verdict(on: few, of: PermitModel(permits: 0), limit: 1000) else {
            Issue.record("expected .tooWide for 30 steps that return together and a limit of 1000 states")
            return
        }
    }

    @Test("a fault is shown as a timeline")
    func timeline() {
        let faults = Script(testDescription: "", lines: ["take - 1 2 f1", "take - 3 4 f2"]).history
            .faults(permits: ["x": 1])
        #expect(
            faults == [
                """
                no order of the operations on x explains the call marked <<<
                [--------------]                                 0 us  process 7 task 0 #1: take 1 of x, ok after 1000 us, fence 1
                                               [---------------] 2000 us  process 7 task 1 #2: take 1 of x, ok after 1000 us, fence 2 <<<
                """
            ])
    }
}
