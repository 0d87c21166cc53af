extension Plan {
    /// Measures a message to a process that waits for it.
    func receipt(_ url: String, _ table: inout Table) throws {
        let group = "Send to receipt in another process, TCP, µs"
        let count = sizes.handoffs / 2
        let floor: RoundTrip = try baseline(["pubsub", url, "\(count)"])
        table.add(
            group, "C, hiredis, PUBLISH round trip", floor.round_trip_p50_us,
            also: [("p99", floor.round_trip_p99_us)])
        for placement in Placement.allCases {
            let prefix = randomPrefix()
            let receiver = try worker("receipt-peer", url, count, prefix, placement)
            _ = try worker("receipt", url, count, prefix, placement).rest()
            table.add(
                group, "Mailbox, \(placement.title)", try decode(try receiver.rest()) as Figures,
                goal: placement == .pinned ? "at most 1.5" : nil)
        }
    }
}

/// The output of the C program.
// swift-format-ignore: AlwaysUseLowerCamelCase
private struct RoundTrip: Decodable {
    var round_trip_p50_us: Double
    var round_trip_p99_us: Double
}
