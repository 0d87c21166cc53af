extension Plan {
    /// Measures the memory of messages in Redis.
    func mailMemory(_ url: String, _ table: inout Table) throws {
        let group = "\(sizes.storedMessages) messages of 256 bytes in Redis, bytes per message"
        for (name, job) in [("a list of elements of the same size", "list-memory"), ("a mailbox", "mail-memory")] {
            table.add(group, name, try rate(worker(job, url, sizes.storedMessages, randomPrefix(), .global)))
        }
    }
}
