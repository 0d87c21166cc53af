import TestRandom
import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("The subscription state machine under random events")
struct SubscriptionStateMachineRandomTests {
    static let topics: [SubscriptionTopic] = [
        "a", "b", "c", "d", .pattern("a*"), .pattern("b*"), .shard("a"), .shard("b"),
    ]

    @Test("4,000 random sequences of events violate no invariant", arguments: UInt64(0)..<8)
    func random(part: UInt64) {
        for seed in testSeeds((part * 500)..<(part * 500 + 500)) {
            var generator = SplitMix(seed: seed)
            let trial = SubscriptionTrial(maxTopicsPerCommand: Int.random(in: 1...4, using: &generator))
            var steps: [String] = []
            for _ in 0..<Int.random(in: 10...150, using: &generator) {
                steps.append(Self.step(trial, using: &generator))
                if generator.isHit(1, of: 40) { trial.settle() }
                if !trial.faults.isEmpty { break }
            }
            if trial.faults.isEmpty { trial.settle() }
            if trial.faults.isEmpty { trial.disperse() }
            if !trial.faults.isEmpty {
                Issue.record("seed \(seed): \(trial.faults) after \(steps.suffix(40).joined(separator: ", "))")
                return
            }
        }
    }

    @Test("the random sequences cover completed and refused joins, gaps and messages")
    func coverage() {
        var (completions, refusals, gaps, deliveries) = (0, 0, 0, 0)
        for seed in 0..<100 as Range<UInt64> {
            var generator = SplitMix(seed: seed)
            let trial = SubscriptionTrial(maxTopicsPerCommand: 2)
            for _ in 0..<150 { _ = Self.step(trial, using: &generator) }
            completions += trial.completions
            refusals += trial.refusals
            gaps += trial.gaps
            deliveries += trial.deliveries
        }
        #expect(completions > 300)
        #expect(refusals > 50)
        #expect(gaps > 50)
        #expect(deliveries > 300)
    }

    /// Performs one random step and returns its description.
    static func step(_ trial: SubscriptionTrial, using generator: inout SplitMix) -> String {
        func some(of topics: [SubscriptionTopic]) -> [SubscriptionTopic] {
            Array(topics.shuffled(using: &generator).prefix(Int.random(in: 1...4, using: &generator)))
        }
        let listener = trial.listeners.randomElement(using: &generator)
        switch generator.next() % 32 {
        case 0...2:
            let wanted = some(of: topics)
            trial.join(to: wanted)
            return "join \(wanted.map(\.name))"
        case 3...4:
            guard let listener else { return "-" }
            let wanted = some(of: topics)
            trial.join(listener, to: wanted)
            return "\(listener) joins \(wanted.map(\.name))"
        case 5...6:
            guard let listener else { return "-" }
            let left = some(of: trial.topics(of: listener))
            trial.leave(listener, left)
            return "\(listener) leaves \(left.map(\.name))"
        case 7:
            guard let listener else { return "-" }
            trial.leave(listener)
            return "\(listener) leaves"
        case 8:
            guard let join = trial.pendingJoins.randomElement(using: &generator) else { return "-" }
            trial.cancelJoin(join)
            return "cancel \(join)"
        case 9:
            if generator.isHit(1, of: 2) { trial.disconnect() }
            return "disconnect"
        case 10...11:
            trial.connect()
            return "connect"
        case 12:
            trial.ping()
            return "ping"
        case 13:
            let topic = topics.randomElement(using: &generator)!
            let isForbidden = generator.isHit(1, of: 3)
            trial.changeServer { server in
                if isForbidden { server.forbidden.insert(topic) } else { server.forbidden.remove(topic) }
                server.mayPing = !isForbidden
            }
            return "\(isForbidden ? "forbid" : "permit") \(topic.name)"
        case 14...17:
            let topic = topics.randomElement(using: &generator)!
            trial.publish(on: topic)
            return "publish on \(topic.name)"
        case 18...23:
            return trial.carryOut()
        default:
            return trial.receive()
        }
    }
}
