extension Plan {
    /// Measures locks and unlocks of one task without contention.
    func pairs(_ url: String, _ table: inout Table) throws {
        let group = "withLock { }, one task, TCP, pairs/s"
        let floor: Pairs = try baseline(["pairs", url, scripts, "1", "\(sizes.pairs)"])
        table.add(group, "C, hiredis, the same two scripts", floor.pairs_per_s)
        for placement in Placement.allCases {
            let rate = try rate(worker("pairs", url, sizes.pairs, randomPrefix(), placement))
            table.add(group, "DistributedMutex, \(placement.title)", rate, goal: "at least 0.9")
        }
    }
}

/// The output of the C program.
// swift-format-ignore: AlwaysUseLowerCamelCase
struct Pairs: Decodable {
    var pairs_per_s: Double
}
