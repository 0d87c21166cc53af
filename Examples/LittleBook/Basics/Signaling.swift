// Signaling: A does a1, and only then B does b1. A tells by a signal, which is kept for whoever comes too late to hear it.
//
// Under kill -9: a signal that is sent a second time would be counted twice, and one that was received by a process that
// died is gone. So "a1 has happened" is a latch for each round: it is open for ever, however often it is opened.
import RedisDC

struct Signaling: Problem {
    let name = "signaling"
    let title = "One thing happens only after another, in another process"
    let chapter = Chapter.basics
    let processes = 4
    let fewest = 2

    func cast(_ processes: Int) -> [Role] {
        [
            Role("a", processes / 2, roundEnd: "signals", play: a),
            Role("b", processes - processes / 2, roundEnd: "b1", play: b),
        ]
    }

    func a(_ me: Player) async throws {
        for round in try await me.roundsUntilAllAreDone() {
            let happened = try me.coordinator.latch("a1 of \(me.index), round \(round)", count: 1)
            try await me.work()
            try await me.log("a1", round)
            try await happened.countDown(id: "a")
            // From here on the round is done. Before, the next life does it again.
            try await me.log("signals", round)
        }
    }

    func b(_ me: Player) async throws {
        let one = partner(of: me.index, among: me.counts["a"] ?? 0)
        for round in try await me.roundsUntilAllAreDone() {
            let happened = try me.coordinator.latch("a1 of \(one), round \(round)", count: 1)
            try await happened.wait()
            try await me.log("b1", round)
        }
    }

    private func partner(of b: Int, among count: Int) -> Int { (b - 1) % max(1, count) + 1 }

    func check(_ log: Log) -> [Invariant] {
        [
            log.each("b1", after: "a1", "a1 before b1") { entry in
                let a = entry.role == "a" ? entry.index : partner(of: entry.index, among: log.count(of: "a"))
                return "\(a) \(entry.number ?? 0)"
            }
        ]
    }
}
