extension Plan {
    /// What a send and a listen cost the server when there is much else: it is to be flat.
    func mailCrowd(_ url: String, _ table: inout Table) throws {
        for (kind, title) in [("messages", "messages in the mailbox"), ("mailboxes", "other mailboxes")] {
            for count in sizes.crowds {
                let words = [kind, "\(sizes.crowdRounds)"]
                let output = try worker("mail-crowd", url, count, randomPrefix(), .global, words).rest()
                let cost: MailCrowd.Cost = try decode(output)
                table.add("A send, with \(title), at the server, µs", "\(count)", cost.send_us, goal: "flat")
                table.add(
                    "A listen that reads one and acknowledges one, with \(title), at the server, µs", "\(count)",
                    cost.listen_us, goal: "flat")
            }
        }
    }
}
