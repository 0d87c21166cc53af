// The cost of leaderboards and matchmakers for the server, beside the bare commands that they are made of.
import GameServices
import Hiredis
import RedisDCTesting

extension ServerCost {
    func services(_ server: LocalRedis, _ count: Int) async throws {
        switch self {
        case .zadd, .tickets: try await withRedisClient(url: server.url) { try await bare($0, count) }
        case .match: try await matches(server, count)
        default: try await board(server, count)
        }
    }

    private func bare(_ redis: RedisClient, _ count: Int) async throws {
        for number in 0..<count {
            if self == .zadd {
                // As many members in both runs, so that only the commands differ.
                let name = RedisArgument.string("player \(number % 1000)")
                _ = try await redis.send(RedisCommand("ZADD", "board", "GT", "CH", .integer(number), name))
                _ = try await redis.send(RedisCommand("ZREVRANK", "board", name))
                continue
            }
            for player in ["\(number) a", "\(number) b"] {
                _ = try await redis.send(RedisCommand("HSET", "tickets", .string(player), "1000 properties"))
                _ = try await redis.send(RedisCommand("ZADD", "ratings", "1000", .string(player)))
            }
            let found = try await redis.send(RedisCommand("ZRANGE", "ratings", "0", "1")).array ?? []
            let names = found.compactMap(\.string).map { RedisArgument.string($0) }
            _ = try await redis.send(RedisCommand(["ZREM", "ratings"] + names))
            _ = try await redis.send(RedisCommand(["HDEL", "tickets"] + names))
        }
    }

    private func board(_ server: LocalRedis, _ count: Int) async throws {
        try await withRedisClient(url: server.url) { redis in
            let board = try Leaderboard("board", redis: redis)
            for number in 0..<1000 { try await board.submit(number, for: "player \(number)") }
            for number in 0..<count {
                if self == .submit {
                    try await board.submit(1000 + number, for: "player \(number % 1000)")
                } else {
                    _ = try await board.top(10)
                }
            }
        }
    }

    private func matches(_ server: LocalRedis, _ count: Int) async throws {
        try await withBenchOffice(url: server.url, namespace: "cost") { redis, office in
            let matchmaker = try Matchmaker("duel", redis: redis, office: office)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await matchmaker.run() }
                for number in 0..<count {
                    for player in ["\(number) a", "\(number) b"] {
                        try await matchmaker.enqueue(player, rating: 1000)
                    }
                }
                group.cancelAll()
            }
        }
    }
}
