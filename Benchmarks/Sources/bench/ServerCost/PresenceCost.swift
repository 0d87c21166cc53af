// The cost of presence for the server, beside the bare commands that a change is made of.
import GameServices
import Hiredis
import RedisDCTesting

extension ServerCost {
    private static let value = [UInt8](repeating: 120, count: 256)

    func presence(_ server: LocalRedis, _ count: Int) async throws -> Int {
        switch self {
        case .objectChange:
            try await withRedisClient(url: server.url) { try await bareChanges($0, count) }
        case .presenceJoin:
            try await withBucket(server) { bucket, _ in _ = try await join(bucket, 0..<count) }
        case .presenceUpdate:
            try await withBucket(server) { bucket, _ in
                _ = try await join(bucket, 0..<1000)
                for number in 0..<count { try await bucket.update("object \(number % 1000)", Self.value) }
            }
        case .presenceLeave:
            try await withBucket(server) { bucket, _ in try await leave(bucket, count) }
        default:
            return try await withBucket(server, heartbeat: .milliseconds(100)) { try await heartbeats($0, $1, count) }
        }
        return count
    }

    /// Runs `body` with a bucket of a process whose session does not end in order, so that the ends of its clients are not
    /// counted: the client is stopped before presence.
    private func withBucket<Result>(
        _ server: LocalRedis, heartbeat: Duration = .seconds(1200),
        _ body: (PresenceBucket, RedisClient) async throws -> Result
    ) async throws -> Result {
        var configuration = PresenceConfiguration()
        configuration.ttl = .seconds(3600)
        configuration.heartbeatInterval = heartbeat
        // The log is full soon, so that each change removes another one.
        configuration.maxLoggedChanges = 100
        var running: Task<Void, Never>?
        defer { running?.cancel() }
        let result = try await withRedisClient(url: server.url) { redis in
            let presence = try Presence(redis: redis, namespace: "cost", configuration: configuration)
            running = Task { await presence.run() }
            return try await body(try presence.bucket("room"), redis)
        }
        running?.cancel()
        await running?.value
        return result
    }

    private func bareChanges(_ redis: RedisClient, _ count: Int) async throws {
        let value = RedisArgument(Self.value)
        for number in 0..<count {
            // As many objects in both runs, so that only the commands differ.
            _ = try await redis.send(RedisCommand("HSET", "objects", .string("object \(number % 1000)"), value))
            _ = try await redis.send(RedisCommand("RPUSH", "log", value))
            _ = try await redis.send(RedisCommand("LTRIM", "log", "-100", "-1"))
            _ = try await redis.send(RedisCommand("PUBLISH", "changes", value))
        }
    }

    private func join(_ bucket: PresenceBucket, _ numbers: Range<Int>) async throws -> [PresenceOwner] {
        var owners: [PresenceOwner] = []
        for number in numbers {
            let owner = try await bucket.connect(user: "user \(number)", client: "page")
            try await bucket.put("object \(number)", Self.value, owner: owner)
            owners.append(owner)
        }
        return owners
    }

    private func leave(_ bucket: PresenceBucket, _ count: Int) async throws {
        // As many in both runs, so that only their ends differ.
        let owners = try await join(bucket, 0..<(2 * Self.presenceLeave.count))
        var changes = bucket.changes(after: try await bucket.snapshot().position).makeAsyncIterator()
        for owner in owners.prefix(count) {
            try await bucket.disconnect(owner)
            while let event = try await changes.next() {
                if case .change(let change) = event, case .left = change.kind { break }
            }
        }
    }

    /// The only scripts that run meanwhile are heartbeats, so the server's own count of scripts says how many they were.
    private func heartbeats(_ bucket: PresenceBucket, _ redis: RedisClient, _ count: Int) async throws -> Int {
        _ = try await join(bucket, 0..<1000)
        let before = try await scripts(redis)
        // Looking more often would be counted too.
        try await Task.sleep(for: .milliseconds(100 * count))
        return try await scripts(redis) - before
    }
}
