// Readers and writers with priority for writers: once a writer has arrived, no reader enters before
// all writers have left. Readers may starve as long as writers keep arriving. The writers therefore
// stop after a number of rounds.
//
// The first writer acquires `no readers` for all writers, and the first reader acquires `no
// writers` for all readers. A reader passes through the first of these mutexes; a writer holds the
// second one alone. If a process is killed: mutexes and light switches are leases.
import RedisDC

struct WriterPriority: Problem {
    let name = "writer-priority"
    let title = "Readers together, a writer alone, and waiting writers first"
    let chapter = Chapter.classical
    let processes = 5

    func cast(_ processes: Int) -> [Role] {
        let readers = max(1, processes / 2)
        return [
            Role("reader", readers, roundEnd: "closes", play: reader),
            Role("writer", processes - readers, roundEnd: "finishes", play: writer),
        ]
    }

    func reader(_ me: Player) async throws {
        let noReaders = try me.coordinator.mutex("no readers")
        let readers = try me.coordinator.mutex("no writers").lightSwitch("readers")
        for round in try await me.rounds() {
            let reading = try await noReaders.withLock { _ in
                let lease = try await readers.lock()
                try await me.log("reads", round)
                return lease
            }
            try await me.work()
            try await me.log("closes", round)
            try await reading.release()
        }
    }

    func writer(_ me: Player) async throws {
        let writers = try me.coordinator.mutex("no readers").lightSwitch("writers")
        let noWriters = try me.coordinator.mutex("no writers")
        for round in try await me.rounds() {
            try await writers.withLock { _ in
                try await me.log("waits", round)
                try await noWriters.withLock { _ in
                    try await me.log("writes", round)
                    try await me.work()
                    try await me.log("finishes", round)
                }
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
            },
            log.inside(
                "no reader enters while a writer waits or writes", from: ["reads", "waits"],
                to: ["closes", "finishes"]
            ) { inside, newcomer in
                newcomer.event == "waits" || inside.allSatisfy { $0.event == "reads" }
            },
        ]
    }
}
