import GameServices
import Hiredis
import RedisDCTesting

extension Plan {
    /// Measures leaderboards of two sizes beside the bare commands of a sorted set, and matches.
    func services(_ server: LocalRedis, _ table: inout Table) async throws {
        let tasks = 64
        let each = sizes.boardOperations / tasks
        try await withBenchOffice(url: server.url, namespace: "services") { redis, office in
            for entries in [1000, sizes.entries] {
                let set = RedisArgument.string("set \(entries)")
                let board = try Leaderboard("board \(entries)", redis: redis, namespace: "services")
                try await concurrently(tasks) { task in
                    for number in stride(from: task, to: entries, by: tasks) {
                        _ = try await redis.send(RedisCommand("ZADD", set, .integer(number), .string("p\(number)")))
                        try await board.submit(number, for: "p\(number)")
                    }
                }
                let group = "64 tasks, one connection, a ranking of \(entries) names, operations/s"
                func measure(_ title: String, _ operation: @escaping @Sendable (_ name: Int) async throws -> Void)
                    async throws
                {
                    let start = monotonicNow()
                    try await concurrently(tasks) { task in
                        for number in 0..<each { try await operation((task + number * 7919) % entries) }
                    }
                    table.add(group, title, Double(tasks * each) / (Double(monotonicNow() - start) / 1e9))
                }
                try await measure("ZADD GT, then ZREVRANK") { number in
                    let name = RedisArgument.string("p\(number)")
                    _ = try await redis.send(RedisCommand("ZADD", set, "GT", "CH", .integer(number + 1000), name))
                    _ = try await redis.send(RedisCommand("ZREVRANK", set, name))
                }
                try await measure("submit, which replies the rank") {
                    try await board.submit($0 + 1000, for: "p\($0)")
                }
                try await measure("top ten") { _ in _ = try await board.top(10) }
                try await measure("ten around a name") { _ = try await board.around("p\($0)", 10) }
            }

            let matchmaker = try Matchmaker("duel", redis: redis, office: office, namespace: "services")
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await matchmaker.run() }
                let start = monotonicNow()
                try await concurrently(tasks) { task in
                    for number in 0..<(each / 8) {
                        try await matchmaker.enqueue("\(task) \(number)", rating: 1000)
                    }
                }
                let seconds = Double(monotonicNow() - start) / 1e9
                table.add(
                    "64 tasks, one connection, matches of two players of one rating, matches/s", "matchmaker",
                    Double(tasks * (each / 8) / 2) / seconds)
                group.cancelAll()
            }
        }
    }

    private func concurrently(
        _ tasks: Int, _ body: @escaping @Sendable (_ task: Int) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<tasks { group.addTask { try await body(task) } }
            try await group.waitForAll()
        }
    }
}
