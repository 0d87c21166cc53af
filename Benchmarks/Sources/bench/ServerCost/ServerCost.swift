// The cost of operations for the server, in instructions.
import Foundation
import Hiredis
import QueueListen
import RedisDC
import RedisDCTesting

/// The operations whose cost is counted. Each runs `count` times, alone with the server, and returns how often it ran.
enum ServerCost: String, CaseIterable {
    case setPair = "SET NX, compare and delete"
    case hashLockPair = "a reentrant lock in a hash, announced unlock"
    case publishWithHistory = "publish with history in a stream, 256 bytes"
    case xadd = "XADD, 256 bytes"
    case lockPair = "lock and unlock, uncontended"
    case signalWait = "semaphore: signal and wait"
    case handOff = "semaphore: hand-off to a waiter"
    case barrierArrival = "barrier of 8: an arrival"
    case heartbeat = "heartbeat with 1,000 claims"
    case send1 = "mailbox: send of 256 bytes to 1"
    case send16 = "mailbox: send of 256 bytes to 16"
    case send256 = "mailbox: send of 256 bytes to 256"
    case listen = "mailbox: listen that finds one and acknowledges one"
    case zadd = "ZADD GT and ZREVRANK, 1,000 members"
    case submit = "leaderboard: submit to 1,000 entries"
    case topTen = "leaderboard: top ten of 1,000 entries"
    case tickets = "HSET, ZADD, ZRANGE, ZREM and HDEL of two tickets"
    case match = "matchmaker: two tickets that match, until both players are notified"
    case objectChange = "HSET, RPUSH, LTRIM and PUBLISH of an object of 256 bytes"
    case presenceJoin = "presence: connect, and put of 256 bytes"
    case presenceUpdate = "presence: update of 256 bytes, 1,000 objects"
    case presenceLeave = "presence: disconnect, until the object has left"
    case presenceHeartbeat = "presence: heartbeat with 1,000 clients"

    /// The operation that the others are compared with.
    static let unit = ServerCost.setPair

    /// Enough for the difference of two runs to be exact to a per mille.
    var count: Int {
        switch self {
        case .setPair, .hashLockPair, .publishWithHistory, .xadd, .zadd, .objectChange: 4000
        case .lockPair, .signalWait, .handOff, .barrierArrival, .send1, .listen, .submit, .topTen, .tickets,
            .presenceUpdate:
            1600
        case .match, .presenceJoin, .presenceLeave: 400
        case .presenceHeartbeat: 100
        case .heartbeat: 10
        case .send16: 200
        case .send256: 30
        }
    }

    /// The factor by which its ratio may exceed the recorded one. How many confirmations of a hand-off share a script,
    /// whether the message of an open barrier overtakes the reply to one of its arrivals, how many ticks of a matchmaker come
    /// in between, and whether a reply overtakes the message of a leave, depends on time, and so on the load of the machine.
    var slack: Double {
        switch self {
        case .handOff, .barrierArrival, .match, .presenceLeave: 1.15
        default: 1.05
        }
    }

    /// Whether it is compared with the record: the library's operations, except for heartbeats. Those are sent by time, so
    /// the server's own timer counts too.
    var isCompared: Bool {
        switch self {
        case .setPair, .hashLockPair, .publishWithHistory, .xadd, .zadd, .tickets, .objectChange, .heartbeat,
            .presenceHeartbeat:
            false
        default: true
        }
    }

    func run(_ server: LocalRedis, _ count: Int) async throws -> Int {
        switch self {
        case .setPair, .hashLockPair, .publishWithHistory, .xadd:
            try await withRedisClient(url: server.url) { try await rival($0, count) }
        case .lockPair, .signalWait, .handOff, .barrierArrival: try await engine(server, count)
        case .heartbeat: return try await heartbeats(server, count)
        case .send1: try await sends(server, recipients: 1, count)
        case .send16: try await sends(server, recipients: 16, count)
        case .send256: try await sends(server, recipients: 256, count)
        case .listen: try await listens(server, count)
        case .zadd, .submit, .topTen, .tickets, .match: try await services(server, count)
        case .objectChange, .presenceJoin, .presenceUpdate, .presenceLeave, .presenceHeartbeat:
            return try await presence(server, count)
        }
        return count
    }

    // MARK: Others

    private func rival(_ redis: RedisClient, _ count: Int) async throws {
        let token: RedisArgument = "0123456789abcdef0123456789abcdef:1"
        let body = RedisArgument([UInt8](repeating: 120, count: 256))
        for _ in 0..<count {
            switch self {
            case .setPair:
                _ = try await redis.send("SET", "lock", token, "NX", "PX", "30000")
                _ = try await redis.script(Rivals.compareAndDelete, keys: ["lock"], arguments: [token])
            case .hashLockPair:
                _ = try await redis.script(Rivals.hashLock, keys: ["lock"], arguments: ["30000", token])
                _ = try await redis.script(
                    Rivals.hashUnlock, keys: ["lock", "lock:channel"], arguments: ["0", "30000", token])
            case .publishWithHistory:
                _ = try await redis.script(
                    Rivals.publishWithHistory, keys: ["stream", "meta"],
                    arguments: [body, "100000", "300", "channel", "600", "epoch"])
            default: _ = try await redis.send("XADD", "stream", "*", "d", body)
            }
        }
    }

    // MARK: The engine

    private func engine(_ server: LocalRedis, _ count: Int) async throws {
        // No heartbeat comes in between.
        var configuration = CoordinatorConfiguration()
        configuration.ttl = .seconds(3600)
        try await withBenchCoordinator(url: server.url, namespace: "cost", configuration: configuration) {
            redis, coordinator in
            try await withTaskExecutorPreference(redis.executor) {
                switch self {
                case .lockPair:
                    let mutex = try coordinator.mutex("m")
                    for _ in 0..<count { try await mutex.withLock { _ in } }
                case .signalWait:
                    let semaphore = try coordinator.semaphore("s", permits: 0)
                    for _ in 0..<count {
                        try await semaphore.signal()
                        try await semaphore.wait()
                    }
                case .handOff: try await handOffs(coordinator, count)
                default: try await arrivals(coordinator, count)
                }
            }
        }
    }

    /// All wait before the first is signalled, so that every signal meets a waiter.
    private func handOffs(_ coordinator: Coordinator, _ count: Int) async throws {
        let semaphore = try coordinator.semaphore("s", permits: 0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<count { group.addTask { try await semaphore.wait() } }
            while try await coordinator.inspect("s", limit: 1)?.waiterCount != count {
                try await Task.sleep(for: .milliseconds(200))
            }
            for _ in 0..<count { try await semaphore.signal() }
            try await group.waitForAll()
        }
    }

    private func arrivals(_ coordinator: Coordinator, _ count: Int) async throws {
        let barrier = try coordinator.barrier("b", parties: 8)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<(count / 8) { try await barrier.arriveAndWait() } }
            }
            try await group.waitForAll()
        }
    }

    /// The only scripts that run meanwhile are heartbeats, so the server's own count of scripts says how many they were.
    private func heartbeats(_ server: LocalRedis, _ count: Int) async throws -> Int {
        var configuration = CoordinatorConfiguration()
        configuration.ttl = .seconds(3)
        return try await withBenchCoordinator(url: server.url, namespace: "cost", configuration: configuration) {
            redis, coordinator in
            let semaphore = try coordinator.semaphore("s", permits: 1000)
            var leases: [Lease] = []
            for _ in 0..<1000 { leases.append(try await semaphore.acquireLease()) }
            let before = try await scripts(redis)
            // A heartbeat each second. Looking more often would be counted too.
            try await Task.sleep(for: .seconds(count))
            let beaten = try await scripts(redis) - before
            for lease in leases { try await lease.release() }
            return beaten
        }
    }

    func scripts(_ redis: RedisClient) async throws -> Int {
        let info = try await redis.send("INFO", "commandstats").string ?? ""
        guard
            let line = info.split(whereSeparator: \.isNewline).first(where: { $0.hasPrefix("cmdstat_evalsha:calls=") })
        else { return 0 }
        return Int(line.drop { $0 != "=" }.dropFirst().prefix { $0.isNumber }) ?? 0
    }

    // MARK: Mailboxes

    private func sends(_ server: LocalRedis, recipients: Int, _ count: Int) async throws {
        try await withBenchOffice(url: server.url, namespace: "cost") { _, office in
            let names = (0..<recipients).map { "m\($0)" }
            for _ in 0..<count { try await office.send([.bench], to: names) }
        }
    }

    private func listens(_ server: LocalRedis, _ count: Int) async throws {
        try await withBenchOffice(url: server.url, namespace: "cost") { _, office in
            let mailbox = try office.mailbox("m")
            // As many in both runs, so that only the listening differs.
            for _ in 0..<(2 * Self.listen.count / 100) {
                try await office.send([Message](repeating: .bench, count: 100), to: ["m"])
            }
            var cursor: Cursor?
            for _ in 0..<count { cursor = try await mailbox.listen(after: cursor, limit: 1, timeout: .zero).cursor }
        }
    }
}

extension Plan {
    /// Instructions of the server for one operation. One round is enough: they hardly differ between runs.
    func serverCost(_ table: inout Table) async throws {
        guard CountedServer.isAvailable else {
            table.note("server-cost is left out: there is no valgrind on this machine")
            return
        }
        let group = "Instructions of the server for one operation"
        for cost in ServerCost.allCases {
            FileHandle.standardError.write(Data("\(cost.rawValue)\n".utf8))
            table.add(
                group, cost.rawValue, try await CountedServer.perOperation(cost.count) { try await cost.run($0, $1) })
        }
    }
}
