import RedisDCTesting

extension Plan {
    /// Measures workers, against a group of a stream that the same client reads.
    func work(_ server: LocalRedis, _ table: inout Table) throws {
        let group = "Jobs of one mailbox, one process, 64 at a time, 256 bytes per message, TCP, jobs/s"
        let stream = try rate(worker("stream", server.url, sizes.jobs, randomPrefix(), .global))
        table.add(group, "XREADGROUP, XACK and XDEL of 64, \(Placement.global.title)", stream)
        for placement in Placement.allCases {
            let rate = try rate(worker("work", server.url, sizes.jobs, randomPrefix(), placement))
            table.add(
                group, "Mailbox.work, \(placement.title)", rate, goal: placement == .global ? "at least 0.5" : nil)
        }
        let late = "Lateness of scheduled sends at a reader in another process, TCP, µs"
        for placement in Placement.allCases {
            let prefix = randomPrefix()
            let receiver = try worker("late-peer", server.url, sizes.scheduled, prefix, placement)
            _ = try worker("late", server.url, sizes.scheduled, prefix, placement).rest()
            table.add(late, "\(placement.title)", try decode(try receiver.rest()) as Figures, goal: nil)
        }
    }
}
