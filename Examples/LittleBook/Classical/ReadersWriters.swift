// Readers and writers: any number of readers may be inside together; a writer is alone. As in the
// book's first solution, a reader never waits for a waiting writer, so writers may starve as long
// as readers keep arriving. The readers therefore stop after a number of rounds.
//
// If a process is killed: reading and writing are leases of one lock. A dead process's lease is
// free when its session has expired.
import RedisDC

struct ReadersWriters: Problem {
    let name = "readers-writers"
    let title = "Readers together, a writer alone"
    let chapter = Chapter.classical
    let processes = 5

    func cast(_ processes: Int) -> [Role] {
        let writers = max(1, processes / 3)
        return [
            Role("reader", processes - writers, roundEnd: "closes", play: reader),
            Role("writer", writers, roundEnd: "finishes", play: writer),
        ]
    }

    func reader(_ me: Player) async throws {
        let room = try me.coordinator.readWriteLock("room", policy: .preferReaders)
        for round in try await me.rounds() {
            try await room.withReadLock { _ in
                try await me.log("reads", round)
                try await me.work()
                try await me.log("closes", round)
            }
            try await me.work()
        }
    }

    func writer(_ me: Player) async throws {
        let room = try me.coordinator.readWriteLock("room", policy: .preferReaders)
        for round in try await me.rounds() {
            try await room.withWriteLock { _ in
                try await me.log("writes", round)
                try await me.work()
                try await me.log("finishes", round)
            }
            try await me.work()
        }
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.inside(
                "a writer is alone, readers are only with readers", from: ["reads", "writes"],
                to: ["closes", "finishes"]
            ) { inside, newcomer in
                inside.isEmpty || newcomer.event == "reads" && inside.allSatisfy { $0.event == "reads" }
            }
        ]
    }
}
