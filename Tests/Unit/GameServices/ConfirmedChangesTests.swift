import Testing

@testable import GameServices

extension GameServicesTests {
    @Suite("Confirmed changes of a leaderboard")
    struct ConfirmedChangesTests {
        private func submit(_ name: String, _ score: Int = 1) -> ConfirmedSubmit {
            ConfirmedSubmit(
                id: "\(name)-\(score)", name: name, score: score, periods: [LeaderboardWindow.allTime.period(at: 0)],
                answerLifetime: .seconds(60), isInOrder: true, repeatableUntil: .seconds(60))
        }

        private func removal(_ name: String) -> ConfirmedRemoval {
            ConfirmedRemoval(name: name, entries: [(LeaderboardWindow.allTime.period(at: 0), "00000000000001")])
        }

        /// `+NAME` for a submit, and `-NAME` for a removal.
        private func texts(_ changes: ConfirmedChanges) -> [String] {
            changes.changes.map { change in
                switch change.kind {
                case .submit(let submit): "+\(submit.name)"
                case .removal(let removal): "-\(removal.name)"
                }
            }
        }

        @Test("what is older than the time is forgotten with the next change, and when a comparison begins")
        func age() {
            var changes = ConfirmedChanges(maxAge: .seconds(30), maxBytes: 1 << 20)
            changes.append(submit("a"), at: .seconds(1))
            changes.append(submit("b"), at: .seconds(31))
            #expect(texts(changes) == ["+a", "+b"])
            changes.append(submit("c"), at: .seconds(32))
            #expect(texts(changes) == ["+b", "+c"])
            changes.forgetOld(.seconds(62))
            #expect(texts(changes) == ["+c"])
        }

        @Test("the oldest are forgotten beyond the bytes")
        func bytes() {
            let size = ConfirmedChange(number: 0, confirmedAt: .zero, kind: .submit(submit("a"))).size
            var changes = ConfirmedChanges(maxAge: .seconds(30), maxBytes: 2 * size)
            for name in ["a", "b", "c"] { changes.append(submit(name), at: .zero) }
            #expect(texts(changes) == ["+b", "+c"])
            changes.insert(removal("b"), begun: changes.nextNumber, at: .zero)
            #expect(texts(changes) == ["-b"], "a removal takes more")
            changes.append(submit(String(repeating: "x", count: size)), at: .zero)
            #expect(texts(changes) == [], "more than all bytes")
        }

        @Test("a removal forgets the submits of its name that were confirmed before it began")
        func removed() {
            var changes = ConfirmedChanges(maxAge: .seconds(30), maxBytes: 1 << 20)
            for name in ["a", "b", "a"] { changes.append(submit(name), at: .zero) }
            let begun = changes.nextNumber
            changes.append(submit("a", 2), at: .zero)
            changes.insert(removal("a"), begun: begun, at: .zero)
            changes.append(submit("a", 3), at: .zero)
            #expect(texts(changes) == ["+b", "-a", "+a", "+a"])
            changes.insert(ConfirmedRemoval(name: "b", entries: []), begun: changes.nextNumber, at: .zero)
            #expect(texts(changes) == ["-a", "+a", "+a"], "a removal that found nothing needs no repetition")
        }

        @Test("a repeated submit can be repeated again, and a refused one is forgotten")
        func updated() {
            var changes = ConfirmedChanges(maxAge: .seconds(30), maxBytes: 1 << 20)
            for name in ["a", "b", "c"] { changes.append(submit(name), at: .zero) }
            changes.update([0: .seconds(100), 1: nil])
            #expect(texts(changes) == ["+a", "+c"])
            #expect(changes.changes.map { $0.submit?.repeatableUntil } == [.seconds(100), .seconds(60)])
        }
    }
}
