// Readers and writers without starvation of writers: any number of readers may be inside together,
// a writer is alone, and readers that arrive later do not pass a waiting writer. All enter through
// a turnstile, and a writer holds it until it has finished.
//
// If a process is killed: the turnstile and the room are mutexes, and the readers hold the room
// together through a light switch. All of these are leases, which are free when the dead holder's
// session has expired.
import RedisDC

struct NoStarveReadersWriters: Problem {
    let name = "no-starve-readers-writers"
    let title = "Readers together, a writer alone, and writers do not starve"
    let chapter = Chapter.classical
    let processes = 5

    func cast(_ processes: Int) -> [Role] {
        let writers = max(1, processes / 3)
        return [
            Role("reader", processes - writers, roundEnd: "leaves", play: reader),
            Role("writer", writers, roundEnd: "leaves", play: writer),
        ]
    }

    func reader(_ me: Player) async throws {
        let turnstile = try me.coordinator.mutex("turnstile")
        let readers = try me.coordinator.mutex("room").lightSwitch("readers")
        for round in try await me.roundsUntilAllAreDone() {
            try await turnstile.withLock { _ in }
            try await readers.withLock { _ in try await visit(me, round) }
        }
    }

    func writer(_ me: Player) async throws {
        let turnstile = try me.coordinator.mutex("turnstile")
        let room = try me.coordinator.mutex("room")
        for round in try await me.roundsUntilAllAreDone() {
            try await turnstile.withLock { _ in
                try await me.log("waits", round)
                try await room.withLock { _ in try await visit(me, round) }
            }
        }
    }

    private func visit(_ me: Player, _ round: Int) async throws {
        try await me.log("enters", round)
        try await me.work()
        try await me.log("leaves", round)
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.inside(
                "a writer is alone, readers are only with readers", from: ["enters"], to: ["leaves"]
            ) { inside, newcomer in
                inside.isEmpty || newcomer.role == "reader" && inside.allSatisfy { $0.role == "reader" }
            },
            // Only readers that have passed the turnstile before the writer can still enter.
            log.overtaking("nobody passes a waiting writer twice", asks: "waits", gets: "enters", limit: 1),
        ]
    }
}
