import RedisDCTesting

extension Plan {
    /// Measures LPUSH by 64 tasks on one connection.
    func push(_ server: LocalRedis, _ table: inout Table) throws {
        let group = "64 tasks, one connection, LPUSH, TCP, commands/s"
        let floor = try redisBenchmark(server, requests: sizes.pushes, ["lpush", "bench:list", "xxx"])
        table.add(group, "redis-benchmark -P 64 -c 1", floor)
        _ = try Program.output(nil, "redis-cli", ["-p", "\(server.port)", "DEL", "bench:list"])
        for placement in Placement.allCases {
            let rate = try rate(worker("pushes", server.url, sizes.pushes, "bench", placement))
            table.add(group, "RedisClient, \(placement.title)", rate, goal: "at least 0.5")
        }
    }
}
