extension Plan {
    /// Measures a message from PUBLISH to its receipt in another process.
    func pubSub(_ url: String, _ table: inout Table) throws {
        let group = "Publish to receipt in another process, TCP, µs"
        let count = sizes.handoffs / 2
        let floor: Figures = try baseline(["pubsub", url, "\(count)"])
        table.add(group, "C, hiredis", floor, goal: nil)
        for placement in Placement.allCases {
            let prefix = randomPrefix()
            let publisher = try worker("pubsub", url, count, prefix, placement)
            let output = try worker("pubsub-peer", url, count, prefix, placement).rest()
            _ = try publisher.rest()
            table.add(
                group, "Subscription, \(placement.title)", try decode(output),
                goal: placement == .pinned ? "at most 1.15" : nil)
        }
    }

    /// Measures one message to each of 1,000 subscribers.
    func fanOut(_ url: String, _ table: inout Table) throws {
        let group = "Fan-out to 1,000 subscribers of one process, TCP, µs per message"
        let floor: Figures = try baseline(["fanout", url, "1000", "\(sizes.fanOuts)"])
        table.add(group, "C, hiredis, one connection", floor, goal: nil)
        for placement in Placement.allCases {
            let prefix = randomPrefix()
            let peer = try worker("fanout-peer", url, sizes.fanOuts, prefix, placement)
            let output = try worker("fanout", url, sizes.fanOuts, prefix, placement).rest()
            _ = try peer.rest()
            table.add(group, "1,000 Subscriptions, \(placement.title)", try decode(output), goal: nil)
        }
    }
}
