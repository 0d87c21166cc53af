import Hiredis
import RedisDC

/// Many sessions of one process, which hold leases and wait for those of each other until the process is killed.
struct Crowd {
    let redis: RedisClient
    /// Distinguishes the names of this process's mutexes.
    let process: String
    let sessions: Int
    let leases: Int

    /// Session s holds the mutexes `PROCESS-s-0`, `PROCESS-s-1`, … and waits for the first one of the next session. When
    /// it waits, it adds its number to the list `gathered`.
    func gather(ttl: Duration) async throws {
        var configuration = CoordinatorConfiguration()
        configuration.ttl = ttl
        try await withThrowingTaskGroup(of: Void.self) { group in
            for session in 0..<sessions {
                group.addTask { [configuration] in
                    try await withCoordinator(redis: redis, configuration: configuration) { coordinator in
                        var held: [Lease] = []
                        for lease in 0..<leases {
                            held.append(try await coordinator.mutex("\(process)-\(session)-\(lease)").lock())
                        }
                        async let waiting = coordinator.mutex("\(process)-\((session + 1) % sessions)-0").lock()
                        _ = try await redis.send("RPUSH", "gathered", .integer(session))
                        held.append(try await waiting)
                        // The process is killed before.
                        fatalError("waited for nothing with \(held.count) leases")
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
