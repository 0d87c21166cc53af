import GameServices
import Hiredis

/// A process that serves clients in a bucket of presence until it is killed.
struct PresenceServer {
    let redis: RedisClient
    let bucket: String
    let clients: Int

    /// Connects the clients `c0`, `c1`, … of users of the same names, each with an object of that key, and
    /// then adds a line to the list `log`. When its session ends, it adds how many connections that ended,
    /// and how many of them could not put their objects again.
    func serve(ttl: Duration) async throws {
        var configuration = PresenceConfiguration()
        configuration.ttl = ttl
        try await withPresence(redis: redis, configuration: configuration) { presence in
            let bucket = try presence.bucket(bucket)
            let losses = try await bucket.losses()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<clients {
                    group.addTask {
                        let owner = try await bucket.connect(user: "c\(number)", client: "c\(number)")
                        try await bucket.put("c\(number)", "here", owner: owner, grace: .seconds(600))
                    }
                }
                try await group.waitForAll()
            }
            _ = try await redis.send("RPUSH", "log", "serves")
            for await loss in losses {
                var refused = 0
                for owner in loss.owners {
                    do { try await bucket.put(owner.user, "again", owner: owner) } catch let error as GameServiceError {
                        refused += error.code == .lost ? 1 : 0
                    }
                }
                _ = try await redis.send("RPUSH", "log", .string("\(loss.cause) \(loss.owners.count) \(refused)"))
            }
        }
    }
}
