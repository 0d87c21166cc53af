extension Plan {
    /// Measures the server's cost of a send and a listen beside many messages or mailboxes. The target is a
    /// constant cost.
    func mailCrowd(_ url: String, _ table: inout Table) throws {
        for (kind, title) in [("messages", "messages in the mailbox"), ("mailboxes", "other mailboxes")] {
            for count in sizes.crowds {
                let arguments = [kind, "\(sizes.crowdRounds)"]
                let output = try worker("mail-crowd", url, count, randomPrefix(), .global, arguments).rest()
                let cost: MailCrowd.Cost = try decode(output)
                table.add(
                    "Send, by number of \(title), server time, µs", "\(count)", cost.send_us, goal: "constant")
                table.add(
                    "Listen that reads and acknowledges one message, by number of \(title), server time, µs",
                    "\(count)", cost.listen_us, goal: "constant")
            }
        }
    }
}
