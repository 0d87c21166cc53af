// Multiplex: a limited number of processes may be in the critical section. Here the limit is one
// less than the number of processes, so that one always waits.
//
// If a process is killed: a permit acquired with `withPermit` is released when the dead holder's
// session has expired.
import RedisDC

struct Multiplex: Problem {
    let name = "multiplex"
    let title = "No more than n at a time in the critical section"
    let chapter = Chapter.basics
    let processes = 4

    func cast(_ processes: Int) -> [Role] { [Role("thread", processes, roundEnd: "leaves", play: thread)] }

    func thread(_ me: Player) async throws {
        let multiplex = try me.coordinator.semaphore("multiplex", permits: places(me.counts["thread"]))
        for round in try await me.roundsUntilAllAreDone() {
            try await multiplex.withPermit { _ in
                try await me.log("enters", round)
                try await me.work()
                try await me.log("leaves", round)
            }
        }
    }

    private func places(_ threads: Int?) -> Int { (threads ?? 2) - 1 }

    func check(_ log: Log) -> [Invariant] {
        [
            log.atMost(
                places(log.players.count), "never more inside than there are places", from: "enters", to: "leaves")
        ]
    }
}
