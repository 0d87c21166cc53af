extension Plan {
    /// What messages take in Redis.
    func mailMemory(_ url: String, _ table: inout Table) throws {
        let group = "\(sizes.storedMessages) messages of 256 bytes in Redis, bytes each"
        for (name, job) in [("a list of as many bytes", "list-memory"), ("a mailbox", "mail-memory")] {
            table.add(group, name, try rate(worker(job, url, sizes.storedMessages, randomPrefix(), .global)))
        }
    }
}
