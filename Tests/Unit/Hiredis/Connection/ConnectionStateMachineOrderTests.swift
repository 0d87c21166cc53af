import NIOCore
import TestRandom
import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("The connection state machine under events in every order")
struct ConnectionStateMachineOrderTests {
    /// Three commands. The second has the shortest timeout, the third has none.
    private static func script(pipelineAt position: Int) -> [ScriptedCommand] {
        var script = [
            ScriptedCommand(name: "a", timeout: 25), ScriptedCommand(name: "b", timeout: 12),
            ScriptedCommand(name: "c"),
        ]
        script[position].replies = 2
        return script
    }

    @Test("in all sequences of up to seven events, each command gets exactly one correct result", arguments: 0..<3)
    func exhaustive(pipelineAt position: Int) {
        let script = Self.script(pipelineAt: position)
        var runs = 0
        var failures: [String] = []
        func explore(_ events: [ConnectionEvent]) {
            let next = events.count == 7 || events.contains(.close) ? [] : Self.sensible(after: events)
            guard next.isEmpty else {
                for event in next { explore(events + [event]) }
                return
            }
            runs += 1
            guard failures.count < 5 else { return }
            var run = ConnectionRun(script)
            for event in events {
                if let wrong = run.apply(event) {
                    failures.append("\(events): at \(wrong)")
                    return
                }
            }
            // Commands after the end must be refused.
            if let wrong = run.finish() ?? run.apply(.enqueue) { failures.append("\(events): at the end \(wrong)") }
        }
        explore([])
        #expect(failures.isEmpty)
        #expect(runs > 10_000)
    }

    /// Returns the events that can make a difference. Repeated writes and drains, cancels without a command, and more
    /// than two time steps are left to the random runs.
    private static func sensible(after events: [ConnectionEvent]) -> [ConnectionEvent] {
        let enqueued = events.count { $0 == .enqueue }
        var next: [ConnectionEvent] = [.close]
        if enqueued < 3 { next.append(.enqueue) }
        if !events.contains(.drain) { next.append(.drain) }
        guard enqueued > 0 else { return next }
        next.append(.reply)
        if let last = events.lastIndex(of: .enqueue), !events[last...].contains(.write) { next.append(.write) }
        if events.count(where: { $0 == .pass }) < 2 { next.append(.pass) }
        for id in 0..<UInt64(enqueued) where !events.contains(.cancel(id)) { next.append(.cancel(id)) }
        return next
    }

    @Test("in long random runs, each command gets exactly one correct result", arguments: testSeeds(0..<4))
    func random(seed: UInt64) {
        var generator = SplitMix(seed: seed)
        for round in 0..<1500 {
            let script = (0..<12).map { index in
                ScriptedCommand(
                    name: "command \(index)",
                    replies: generator.isHit(1, of: 3) ? Int.random(in: 2...4, using: &generator) : 1,
                    timeout: generator.isHit(1, of: 2) ? Int.random(in: 1...60, using: &generator) : nil)
            }
            var run = ConnectionRun(script)
            var events: [ConnectionEvent] = []
            var wrong: String?
            // Writes and replies are frequent, so that many commands complete.
            for _ in 0..<Int.random(in: 5...60, using: &generator) where wrong == nil {
                let event: ConnectionEvent =
                    switch generator.next() % 16 {
                    case 0...3: .enqueue
                    case 4...6: .write
                    case 7...10: events.contains(.write) ? .reply : .heard
                    case 11: .heard
                    case 12...13: .cancel(generator.next() % 13)
                    case 14: .pass
                    default: generator.isHit(1, of: 8) ? (generator.isHit(1, of: 2) ? .drain : .close) : .write
                    }
                events.append(event)
                wrong = run.apply(event)
            }
            if let wrong = wrong ?? run.finish() {
                Issue.record("seed \(seed), round \(round): \(events): \(wrong)")
                return
            }
        }
    }
}
