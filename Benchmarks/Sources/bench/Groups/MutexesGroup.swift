import RedisDCTesting

extension Plan {
    /// Measures 64 tasks with one mutex each, on one connection.
    ///
    /// redis-benchmark runs one script at a time: first locks of new mutexes, then unlocks of claims that were made before.
    /// There are ten claims for each unlock, so hardly any is released twice. The time of a pair is the sum of both.
    func mutexes(_ server: LocalRedis, _ table: inout Table) throws {
        let group = "64 tasks with one mutex each, one connection, TCP, pairs/s"
        let locks = try rate(server, claims: sizes.requests * 10, range: sizes.requests * 10) { $0.lock }
        let unlocks = try rate(server, claims: sizes.requests * 10, range: sizes.requests * 10) { $0.unlock }
        table.add(group, "redis-benchmark -P 64 -c 1, the same two scripts", 1 / (1 / locks + 1 / unlocks))
        let pipeline: Pairs = try baseline(["pairs", server.url, scripts, "64", "\(sizes.manyPairs / 64)"])
        table.add(group, "C, hiredis, 64 locks in one pipeline, then 64 unlocks", pipeline.pairs_per_s)
        for placement in Placement.allCases {
            let rate = try rate(worker("mutexes", server.url, sizes.manyPairs, randomPrefix(), placement))
            table.add(group, "DistributedMutex, \(placement.title)", rate, goal: "at least 0.5")
        }
    }

    /// Returns how often per second one of the two scripts runs, beside `claims` claims and with random numbers below
    /// `range`.
    private func rate(
        _ server: LocalRedis, claims: Int, range: Int, _ command: (Words) -> [String]
    ) throws -> Double {
        _ = try Program.output(nil, "redis-cli", ["-p", "\(server.port)", "FLUSHALL"])
        let words: Words = try baseline(["words", server.url, scripts, "\(claims)"])
        return try redisBenchmark(server, requests: sizes.requests, options: ["-r", "\(range)"], command(words))
    }
}

/// The output of the C program.
private struct Words: Decodable {
    var lock: [String]
    var unlock: [String]
}
