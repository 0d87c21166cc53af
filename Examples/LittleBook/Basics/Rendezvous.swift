// Rendezvous: A does a1 and then a2, B does b1 and then b2. a1 comes before b2, and b1 before a2;
// the order is otherwise free. Several pairs do this here, round after round.
//
// If a process is killed after its signal and before the log entry that follows, its next life
// signals again, and a semaphore would count both. So "a has arrived" is a latch for each round.
// Opening it again has no effect.
import RedisDC

struct Rendezvous: Problem {
    let name = "rendezvous"
    let title = "Two meet: the first half of each comes before the second half of the other"
    let chapter = Chapter.basics
    let processes = 4
    let minProcesses = 2

    func cast(_ processes: Int) -> [Role] {
        [
            Role("a", processes / 2, roundEnd: "a2", play: a),
            Role("b", processes / 2, roundEnd: "b2", play: b),
        ]
    }

    func a(_ me: Player) async throws {
        for round in try await me.rounds() {
            let (aArrived, bArrived) = try arrivals(me, round)
            try await me.log("a1", round)
            try await aArrived.countDown(id: "a")
            try await bArrived.wait()
            try await me.log("a2", round)
        }
    }

    func b(_ me: Player) async throws {
        for round in try await me.rounds() {
            let (aArrived, bArrived) = try arrivals(me, round)
            try await me.log("b1", round)
            try await bArrived.countDown(id: "b")
            try await aArrived.wait()
            try await me.log("b2", round)
        }
    }

    private func arrivals(_ me: Player, _ round: Int) throws -> (Latch, Latch) {
        (
            try me.coordinator.latch("a\(me.index) arrived in round \(round)", count: 1),
            try me.coordinator.latch("b\(me.index) arrived in round \(round)", count: 1)
        )
    }

    func check(_ log: Log) -> [Invariant] {
        func pairAndRound(_ entry: Entry) -> String { "\(entry.index) \(entry.number ?? 0)" }
        return [
            log.each("b2", after: "a1", "a1 before b2", key: pairAndRound),
            log.each("a2", after: "b1", "b1 before a2", key: pairAndRound),
        ]
    }
}
