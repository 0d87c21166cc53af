// Signaling: B does b1 only after A has done a1. A sends a signal, which is kept if B is not
// waiting yet.
//
// If a process is killed: a semaphore would count a repeated signal twice, and would lose a signal
// that a dead process had received. So "a1 has happened" is a latch for each round. It stays open,
// and opening it again has no effect.
import RedisDC

struct Signaling: Problem {
    let name = "signaling"
    let title = "One step happens only after another, in another process"
    let chapter = Chapter.basics
    let processes = 4
    let minProcesses = 2

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
            // This entry ends the round. If the process dies before it, the next life repeats the round.
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
