// Readers and writers, with priority for writers: once a writer has come, no reader comes in before all writers are gone. So
// readers may starve as long as writers keep coming; therefore the writers stop when they have written often enough.
//
// The first writer takes `no readers` for all writers, the first reader `no writers` for all readers; who reads must get
// through the first and who writes is alone in the second. Under kill -9: both are mutexes and light switches, so leases.
import RedisDC

struct WriterPriority: Problem {
    let name = "writer-priority"
    let title = "Readers together, a writer alone, and no reader before a writer that waits"
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
                "no reader comes in while a writer waits or writes", from: ["reads", "waits"],
                to: ["closes", "finishes"]
            ) { inside, newcomer in
                newcomer.event == "waits" || inside.allSatisfy { $0.event == "reads" }
            },
        ]
    }
}
