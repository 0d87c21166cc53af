// Faults of real servers: restarts with and without data, eviction, and the limit of memory.

/// The data on the disk.
struct SavedState: Sendable {
    var entries: [Bytes: SimulatedRedis.Entry]
    var offset: Int64
}

extension SimulatedRedis {
    /// The loss of a restart.
    public enum Loss: Hashable, Sendable {
        /// Nothing, as with `appendfsync always`.
        case nothing
        /// The changes since `save`, as with `appendfsync everysec`.
        case sinceSave
        /// Everything, as without persistence.
        case everything
    }

    /// Writes the data to the disk: what is there now survives a restart that loses later changes.
    public mutating func save() { saved = SavedState(entries: entries, offset: offset) }

    /// Ends the server and starts it again. Its clients and scripts are gone.
    public mutating func restart(losing loss: Loss) {
        switch loss {
        case .nothing: break
        case .sinceSave:
            entries = saved?.entries ?? [:]
            replication.offset = saved?.offset ?? 0
        case .everything:
            entries = [:]
            replication.offset = 0
            saved = nil
        }
        clients.removeAll()
        scripts = [:]
        replication.effects = []
        replication.acknowledged = [:]
    }

    /// Deletes a key as a server does that needs memory. Returns whether there was one.
    @discardableResult
    public mutating func evict(_ key: Bytes) -> Bool {
        guard delete(key) else { return false }
        noteEffect(["DEL", key])
        commitEffects()
        return true
    }

    /// The keys that exist, in an order that is the same in each run.
    public var keys: [Bytes] { liveKeys }

    /// About the number of bytes that the data takes: the bytes of all keys, fields, members and values, 64 for each key,
    /// and 16 for each element.
    public var estimatedSize: Int {
        entries.reduce(0) { sum, entry in
            let size = entry.value.value.size
            return sum + entry.key.count + 64 + size.bytes + 16 * size.elements
        }
    }

    /// Whether commands that need memory are refused.
    var isOutOfMemory: Bool {
        guard let limit = settings.maxMemory, replication.role == .master else { return false }
        return estimatedSize > limit
    }
}
