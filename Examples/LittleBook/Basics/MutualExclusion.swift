// Mutex: at most one process is in the critical section, and every process gets there.
//
// If a process is killed: the lock is a lease. It is free for the next waiter when the dead
// holder's session has expired.
import RedisDC

struct MutualExclusion: Problem {
    let name = "mutex"
    let title = "Only one at a time in the critical section"
    let chapter = Chapter.basics
    let processes = 3

    func cast(_ processes: Int) -> [Role] { [Role("thread", processes, roundEnd: "leaves", play: thread)] }

    func thread(_ me: Player) async throws {
        let mutex = try me.coordinator.mutex("mutex")
        for round in try await me.roundsUntilAllAreDone() {
            try await mutex.withLock { _ in
                try await me.log("enters", round)
                try await me.work()
                try await me.log("leaves", round)
            }
        }
    }

    func check(_ log: Log) -> [Invariant] {
        [log.atMost(1, "never two in the critical section", from: "enters", to: "leaves")]
    }
}
