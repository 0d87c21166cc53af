import TestRandom
import Testing

@testable import RedisDC

@Suite("Deadlocks")
struct DeadlockCycleTests {
    private func link(_ waiter: String, _ holder: String) -> Deadlock.Link {
        .init(name: "\(waiter)\(holder)", waiter: "\(waiter):1", holder: "\(holder):1", waiterNode: "", holderNode: "")
    }

    private func circles(_ links: (String, String)...) -> [[String]] {
        Deadlock.all(in: links.map { link($0.0, $0.1) }).map { $0.links.map(\.name) }
    }

    @Test("chains, trees and diamonds are no deadlocks")
    func none() {
        #expect(circles().isEmpty)
        #expect(circles(("a", "b"), ("b", "c"), ("c", "d")).isEmpty)
        #expect(circles(("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("e", "a")).isEmpty)
    }

    @Test("circles of two and three links, behind a chain and side by side, are found once")
    func found() {
        #expect(circles(("a", "b"), ("b", "a")) == [["ab", "ba"]])
        #expect(circles(("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")) == [["bc", "cd", "db"]])
        #expect(circles(("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("x", "c")).count == 2)
        #expect(
            circles(("a", "x"), ("a", "b"), ("b", "y"), ("b", "c"), ("c", "a"), ("c", "z")) == [["ab", "bc", "ca"]])
    }

    @Test("in a random graph a deadlock is found exactly when there is a circle")
    func random() {
        for seed in testSeeds(0..<500) {
            var generator = SplitMix(seed: seed)
            let count = Int.random(in: 2...7, using: &generator)
            let names = (0..<count).map { "s\($0)" }
            let links = (0..<Int.random(in: 1...10, using: &generator)).compactMap { _ -> (String, String)? in
                let (a, b) = (names.randomElement(using: &generator)!, names.randomElement(using: &generator)!)
                return a == b ? nil : (a, b)
            }
            // A session that waits for no other ends and frees its waiters: the sessions that remain wait in a circle.
            var left = links
            while true {
                let waiting = Set(left.map(\.0))
                let rest = left.filter { waiting.contains($0.1) }
                if rest.count == left.count { break }
                left = rest
            }
            let found = Deadlock.all(in: links.map { link($0.0, $0.1) })
            #expect(found.isEmpty == left.isEmpty, "seed \(seed): \(links)")
            for circle in found {
                for (one, next) in zip(circle.links, circle.links.dropFirst() + circle.links.prefix(1)) {
                    #expect(one.holderSession == next.waiterSession, "seed \(seed)")
                }
            }
        }
    }
}
