import Hiredis
import RedisDC

/// A process that takes one role with a primitive and stays in it until it is killed.
struct Part {
    let coordinator: Coordinator
    let redis: RedisClient
    let name: String

    func play(_ words: [String]) async throws {
        switch words[0] {
        case "read": try await coordinator.readWriteLock(name).withReadLock { _ in try await forever() }
        case "write": try await coordinator.readWriteLock(name).withWriteLock { _ in try await forever() }
        case "light-switch":
            try await coordinator.mutex(name).lightSwitch(words[1]).withLock { _ in try await forever() }
        case "cohort-linger", "cohort-turn":
            // Has many turns and records their fences, then keeps the mutex, unused or not.
            let mutex = try coordinator.mutex(name, locality: .cohort(linger: .seconds(60)))
            for _ in 0..<200 {
                try await mutex.withLock { _ = try await redis.send("RPUSH", "log", .string("\($0.fence)")) }
            }
            if words[0] == "cohort-turn" { try await mutex.withLock { _ in try await forever() } }
            try await forever()
        case "exchanger":
            _ = try await coordinator.exchanger(name, of: String.self).exchange(words[1])
        case "consumer":
            try await coordinator.boundedBuffer(name, of: String.self, capacity: 2).withItem { item in
                _ = try await redis.send("RPUSH", "log", .string(item))
                try await forever()
            }
        case "condition":
            let mutex = try coordinator.mutex(name)
            try await mutex.withLock { lease in try await mutex.condition("c").wait(lease) }
        case "barrier", "breaking-barrier":
            let failure: Barrier.Failure = words[0] == "barrier" ? .removesParty : .breaks
            try await coordinator.barrier(name, parties: Int(words[1])!, failure: failure).arriveAndWait()
            try await forever()
        case "latch", "breaking-latch":
            let death: Latch.Death = words[0] == "latch" ? .countsAsDown : .breaks
            try await coordinator.latch(name, count: Int(words[1])!, death: death).withParticipation { _ in
                _ = try await redis.send("RPUSH", "log", "in")
                try await forever()
            }
        case "phaser": try await coordinator.phaser(name).withParty { _ in try await forever() }
        case "phases":
            // A party that arrives a number of times and records the phase of each arrival.
            try await coordinator.phaser(name).withParty { party in
                for _ in 0..<Int(words[1])! {
                    let arrival = try await party.arriveAndWait()
                    _ = try await redis.send("RPUSH", "log", .string("\(arrival.generation)"))
                }
            }
        default: fatalError("cannot run: unknown role \"\(words[0])\"")
        }
    }

    private func forever() async throws { while true { try await Task.sleep(for: .seconds(1)) } }
}
