import RedisDCTesting

extension Plan {
    /// Measures one reader of one mailbox, against the cheapest way to read the same number of bytes from Redis.
    func drain(_ server: LocalRedis, _ table: inout Table) throws {
        let group = "Draining one mailbox, one reader, 256 bytes per message, TCP, messages/s"
        let list = randomPrefix()
        let body = String(repeating: "x", count: 256)
        _ = try redisBenchmark(server, requests: 1000, ["RPUSH", list, body])
        let pages = try Program.output(
            nil, "redis-benchmark",
            ["-p", "\(server.port)", "-c", "1", "-n", "\(sizes.messages / 1000)", "--csv", "LRANGE", list, "0", "999"])
        table.add(group, "redis-benchmark -c 1, LRANGE of 1,000", try rate(csv: pages) * 1000)
        for placement in Placement.allCases {
            let rate = try rate(worker("drain", server.url, sizes.messages, randomPrefix(), placement))
            table.add(group, "Mailbox.messages(), \(placement.title)", rate)
        }
    }
}
