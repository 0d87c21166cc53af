// The checks of histories, on histories made by hand: each finds what it is there for, and nothing else.
import TestHistory
import Testing

@testable import RedisDC

/// A history in few words, one for each call: `take door 10 20 f5`, and later `give 1 30 40` for the first one.
private struct Script: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var lines: [String]
    var permits = 1
    /// What the judgement says, or `nil` when nothing is wrong.
    var fault: String?

    /// As the recorder would have written it.
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
        testDescription: "a grant that is told before the release is",
        lines: ["take - 1 2 f1", "release 1 3 8", "take - 2 6 f2"]
    ),
    Script(
        testDescription: "two holders", lines: ["take - 1 2 f1", "take - 3 4 f2"], fault: "no order"),
    Script(
        testDescription: "two holders, and the first releases later",
        lines: ["take - 1 2 f1", "take - 3 4 f2", "release 1 5 6"], fault: "no order"),
    Script(
        testDescription: "two bodies at a time",
        lines: ["take - 1 2 f1 held9", "release 1 3 4", "take - 5 6 f2 held8"],
        fault: "in hand"),
    Script(
        testDescription: "a release of what was released",
        lines: ["take - 1 2 f1", "release 1 3 4", "take - 5 6 f2", "release 1 7 8", "take - 9 10 f3"], fault: "no order"
    ),
    Script(
        testDescription: "a permit made from nothing", lines: ["wait - 1 2", "wait - 3 4"], fault: "no order"),
    Script(
        testDescription: "more consumed than there was", lines: ["wait - 1 2", "wait - 3 4"], fault: "consumed more"),
    Script(
        testDescription: "a permit of a signal that comes later", lines: ["wait - 1 2", "wait - 3 4", "signal - 5 6"],
        fault: "no order"),
    Script(
        testDescription: "a permit of a signal under way", lines: ["wait - 1 2", "wait - 3 6", "signal - 4 9"]),
    Script(
        testDescription: "a permit of a signal of which nobody knows whether it ran",
        lines: ["wait - 1 2", "signal - 3 4 unknown", "wait - 50 60"]),
    Script(
        testDescription: "… which is one permit, not two",
        lines: ["wait - 1 2", "signal - 3 4 unknown", "wait - 50 60", "wait - 70 80"], fault: "no order"),
    Script(
        testDescription: "a signal that is not known to have run need not have",
        lines: ["wait - 1 2", "signal - 3 4 unknown", "tryWait - 5 6 refused"]),
    Script(
        testDescription: "a batch that takes more than there is",
        lines: ["wait - 1 2 x2", "wait - 3 4 x2"], permits: 3, fault: "no order"),
    Script(
        testDescription: "a fence that goes back", lines: ["take - 1 2 f5", "release 1 3 4", "take - 5 6 f4"],
        fault: "came after"),
    Script(
        testDescription: "a fence that goes back among concurrent grants",
        lines: ["take - 1 2 f5", "release 1 3 6", "take - 1 7 f4"], fault: "no order"),
    Script(
        testDescription: "a first call that is granted late, with the highest fence",
        lines: ["take - 1 90 f9", "take - 2 3 f1", "release 2 4 5", "take - 6 7 f2", "release 4 8 9"]),
    Script(
        testDescription: "a fence that comes twice", lines: ["take - 1 2 f5", "take - 1 2 f5"], permits: 2,
        fault: "given twice"),
    Script(
        testDescription: "a grant after its cancel, which nobody has",
        lines: ["take - 1 2 f1", "take - 3 4 cancelled", "release 1 5 6", "tryTake - 7 8 refused"], fault: "no order"),
    Script(
        testDescription: "a try beside one who is cancelled meanwhile",
        lines: ["take - 1 2 f1", "take - 3 9 cancelled", "release 1 5 6", "tryTake - 7 8 refused"]),
    Script(
        testDescription: "a try beside one whose cancel took too long to be settled",
        lines: ["take - 1 2 f1", "take - 3 900 cancelled", "release 1 5 6", "tryTake - 1000 1001 refused"]),
    Script(
        testDescription: "a try that does not overtake who waits for more",
        lines: ["tryTake - 3 4 refused", "take - 1 9 f1 x2", "signal - 5 6"]),
    Script(
        testDescription: "a try that finds enough and nobody waiting", lines: ["tryTake - 1 2 refused"],
        fault: "no order"),
    Script(
        testDescription: "a lease that is lost is free at some time",
        lines: ["take - 1 2 f1", "release 1 3 4 lost", "take - 5 6 f2"]),
    Script(
        testDescription: "… which is so once",
        lines: ["take - 1 2 f1", "release 1 3 4 lost", "take - 5 6 f2", "take - 7 8 f3"], fault: "no order"),
    Script(
        testDescription: "a killed process may have taken it",
        lines: ["take - 5 0", "tryTake - 60 61 refused"]),
    Script(
        testDescription: "a killed process may not have taken it",
        lines: ["take - 5 0", "tryTake - 60 61 f1"]),
    Script(
        testDescription: "readers together, then a writer",
        lines: ["take - 1 2 f1", "take - 1 3 f2", "release 1 4 5", "release 2 4 6", "take - 1 8 f3 x3"], permits: 3),
    Script(
        testDescription: "a writer beside a reader", lines: ["take - 1 2 f1", "take - 3 4 f2 x3"], permits: 3,
        fault: "no order"),
    Script(
        testDescription: "a latch is passed when it has been counted down",
        lines: ["pass - 1 9", "down - 2 3 v1", "down - 4 8 v0", "pass - 10 11", "down - 12 13 v0"], permits: 2),
    Script(
        testDescription: "a latch is passed too early", lines: ["down - 1 2 v1", "pass - 3 4", "down - 5 6 v0"],
        permits: 2, fault: "no order"),
    Script(
        testDescription: "a latch is counted down by one of whom nobody knows whether he did",
        lines: ["down - 1 2 v1", "down - 3 4 unknown", "pass - 5 6"], permits: 2),
    Script(
        testDescription: "two are told the same of a latch", lines: ["down - 1 2 v1", "down - 3 4 v1"], permits: 2,
        fault: "no order"),
    Script(
        testDescription: "two meet, and two again",
        lines: ["arrive - 1 3 v0", "arrive - 2 9 v1", "arrive - 4 9 v1024", "arrive - 5 8 v1025"], permits: 2),
    Script(
        testDescription: "one passes before the other is there", lines: ["arrive - 1 3 v0", "arrive - 4 5 v1"],
        permits: 2, fault: "before all were there"),
    Script(
        testDescription: "a generation before the one before it",
        lines: ["arrive - 5 8 v0", "arrive - 6 9 v1", "arrive - 1 3 v1024", "arrive - 2 4 v1025"], permits: 2,
        fault: "before all were there"),
    Script(
        testDescription: "two are the same arrival", lines: ["arrive - 1 4 v0", "arrive - 2 3 v0"], permits: 2,
        fault: "too many"),
    Script(
        testDescription: "one who was told that nobody came was met",
        lines: ["arrive - 1 4 v0", "arrive - 2 3 timedOut"], permits: 2, fault: "told that they had not"),
    Script(
        testDescription: "one of whom nobody knows was met", lines: ["arrive - 1 4 v0", "arrive - 2 3 unknown"],
        permits: 2),
]

@Suite("Histories made by hand")
struct LinearizabilityTests {
    @Test("are judged", arguments: scripts)
    private func judged(_ script: Script) {
        let faults = script.history.faults(permits: ["x": script.permits])
        if let fault = script.fault {
            #expect(faults.contains { $0.contains(fault) }, "\(faults)")
        } else {
            #expect(faults.isEmpty, "\(faults)")
        }
    }

    @Test("a long and busy one is judged, and one permit too many in it is found")
    func long() {
        for isWrong in [false, true] {
            var steps: [TimedStep<PermitModel.Step>] = []
            for round in 0..<2000 {
                // Six overlap at a time, in no order of their own.
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

    @Test("more at a time than can be searched is said to be so, not passed")
    func tooWide() {
        let steps = (0..<65).map { index in
            TimedStep(step: PermitModel.Step.signal(count: 1), called: UInt64(index), returned: 1000)
        }
        guard case .tooWide = Linearizability.verdict(on: steps, of: PermitModel(permits: 0)) else {
            Issue.record("65 at a time")
            return
        }
        let few = Array(steps.prefix(30))
        guard case .tooWide = Linearizability.verdict(on: few, of: PermitModel(permits: 0), limit: 1000) else {
            Issue.record("30 that return together, with room for 1000 states")
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
                no order of what was done to x explains the line with <<<
                [--------------]                                 0 us  process 7 task 0 #1: take 1 of x, ok after 1000 us, fence 1
                                               [---------------] 2000 us  process 7 task 1 #2: take 1 of x, ok after 1000 us, fence 2 <<<
                """
            ])
    }
}
