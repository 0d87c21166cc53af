// Uses of the engine and the services with large values, long names and many records.
import GameServices
import Hiredis
import QueueListen
import RedisDC
import RedisDCTesting

extension LongestScript {
    /// A name of the maximum length, or of `size` bytes.
    static func long(_ name: String, _ size: Int = 512) -> String {
        name + String(repeating: "x", count: max(0, size - name.utf8.count))
    }

    func operators(_ redis: RedisClient, _ coordinator: Coordinator) async throws {
        switch self {
        case .lightSwitch: try await members(coordinator)
        case .buffer:
            let buffer = try coordinator.boundedBuffer(Self.long("b", 506), of: String.self, capacity: 24)
            let item = String(repeating: "x", count: Buffer.maxBytes - 2)
            for _ in 0..<24 { try await buffer.put(item) }
            try? await buffer.withItem { _ in throw CancellationError() }
            _ = try await buffer.take()
            _ = try await coordinator.list()
            try await buffer.destroy()
        case .exchanger:
            let exchanger = try coordinator.exchanger(Self.long("e"), of: String.self, parties: Exchange.maxParties)
            let value = String(repeating: "x", count: Exchange.maxBytes - 2)
            try await Self.together(Exchange.maxParties) { _ in _ = try await exchanger.exchange(value) }
        case .holders:
            let semaphore = try coordinator.semaphore(Self.long("s"), permits: 1000)
            var leases: [Lease] = []
            for _ in 0..<1000 { leases.append(try await semaphore.acquireLease()) }
            for number in 0..<600 {
                try await coordinator.semaphore(Self.long("s\(number)"), permits: 0).signal()
            }
            _ = try await coordinator.inspect(Self.long("s"), limit: 10_000)
            _ = try await coordinator.list()
            for lease in leases { try await lease.release() }
        case .classic:
            let semaphore = try ClassicSemaphore(Self.long("c"), redis: redis)
            try await semaphore.create(permits: ClassicSemaphore.maxPermits)
            try await semaphore.destroy()
        default: try await sweep(redis)
        }
    }

    private func members(_ coordinator: Coordinator) async throws {
        let mutex = try coordinator.mutex(Self.long("m"))
        let group = try mutex.lightSwitch(Self.long("g"))
        let lease = try await mutex.lock()
        try await Self.together(400) { _ in
            try await group.withLock { _ in }
        } meanwhile: {
            try await Self.untilWaiting(400, Self.long("m"), coordinator)
            try await lease.release()
        }
    }

    /// Corrupts a session, and deletes the list of sessions, so that a heartbeat lists them again.
    private func sweep(_ redis: RedisClient) async throws {
        let slots = 20_000
        let state = RedisArgument.string("rdc:{cost:0}:book")
        for start in stride(from: 0, to: slots, by: 1000) {
            let fields = (start..<(start + 1000)).flatMap { number -> [RedisArgument] in
                [.string("c:corrupt:\(number)"), "d\0\0\0\0\0\0\0\0"]
            }
            _ = try await redis.send(RedisCommand(["HSET", state] + fields))
        }
        _ = try await redis.send("HSET", state, "s:corrupt", "corrupt")
        _ = try await redis.send("DEL", "rdc:{cost:0}:sessions")
        while try await redis.send("HEXISTS", state, "s:corrupt").integer == 1 {
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    // MARK: Services

    func services(_ server: LocalRedis) async throws {
        switch self {
        case .board:
            try await withRedisClient(url: server.url) { redis in
                let board = try Leaderboard(Self.long("b", 128), redis: redis)
                let names = (0..<1000).map { Self.long("\($0) ") }
                for (number, name) in names.enumerated() { try await board.submit(number, for: name) }
                _ = try await board.entries(of: names)
                _ = try await board.top(1000)
                _ = try await board.around(names[500], 1000)
                try await board.remove(names[0])
            }
        case .matchmaker:
            try await withBenchOffice(url: server.url, namespace: "cost") { redis, office in
                var configuration = MatchmakerConfiguration()
                configuration.size = 16
                configuration.window = MatchWindow(start: 10, step: 330, every: .seconds(1), max: 1000)
                let matchmaker = try Matchmaker("duel", redis: redis, office: office, configuration: configuration)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { await matchmaker.run() }
                    for number in 0..<300 {
                        try await matchmaker.enqueue(Self.long("\(number) "), rating: number * 7)
                    }
                    group.cancelAll()
                }
            }
        default: try await presence(server)
        }
    }

    private func presence(_ server: LocalRedis) async throws {
        var configuration = PresenceConfiguration()
        configuration.ttl = .seconds(3600)
        try await withRedisClient(url: server.url) { redis in
            try await withPresence(redis: redis, namespace: "cost", configuration: configuration) { presence in
                let bucket = try presence.bucket("room")
                let owner = try await bucket.connect(user: Self.long("user", 256), client: Self.long("page", 256))
                let value = [UInt8](repeating: 120, count: PresenceBucket.maxValueBytes)
                for number in 0..<600 {
                    let key = Self.long("\(number) ", 256)
                    try await bucket.put(key, number < 64 ? value : [], owner: owner)
                }
                let position = try await bucket.snapshot().position
                var changes = bucket.changes(after: position).makeAsyncIterator()
                try await bucket.disconnect(owner)
                for _ in 0..<600 { _ = try await changes.next() }
            }
        }
    }
}
