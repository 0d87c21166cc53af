// The keys of a server: reading, changing, and expiry.

extension SimulatedRedis {
    /// Returns the place of a key that exists. A master deletes one that has expired; a replica waits until its master has
    /// deleted it, and replies as if it had.
    mutating func find(_ key: Bytes) -> Dictionary<Bytes, Entry>.Index? {
        guard let index = entries.index(forKey: key) else { return nil }
        guard let expires = entries.values[index].expires, nowInMilliseconds > expires else { return index }
        // Commands from the master are executed as they are.
        if replication.isApplying { return index }
        guard replication.role == .master else { return nil }
        entries.remove(at: index)
        noteEffect(["DEL", key])
        return nil
    }

    /// Returns the value of a key.
    mutating func value(of key: Bytes) -> Value? { find(key).map { entries.values[$0].value } }

    /// Returns the string of a key.
    mutating func string(_ key: Bytes) throws(RedisError) -> Bytes? {
        switch value(of: key) {
        case .string(let bytes): return bytes
        case nil: return nil
        default: throw .wrongType
        }
    }

    /// Returns the collection of a key.
    mutating func read<Kind: Collected>(_ key: Bytes, as kind: Kind.Type) throws(RedisError) -> Kind? {
        guard let index = find(key) else { return nil }
        guard let collection = Kind(entries.values[index].value) else { throw .wrongType }
        return collection
    }

    /// Changes the collection of a key. One that is empty afterwards is deleted.
    ///
    /// - Returns: What `body` returns, or nil if the key does not exist and is not to be created.
    mutating func update<Kind: Collected, Result>(
        _ key: Bytes, as kind: Kind.Type, isCreated: Bool = false,
        _ body: (inout Kind) throws(RedisError) -> Result
    ) throws(RedisError) -> Result? {
        guard let index = find(key) else {
            guard isCreated else { return nil }
            var collection = Kind()
            let result = try body(&collection)
            if !collection.isEmpty { entries[key] = Entry(value: collection.value) }
            return result
        }
        guard var collection = Kind(entries.values[index].value) else { throw .wrongType }
        // The collection is the only reference to its storage while it is changed.
        entries.values[index].value = .string(Bytes([]))
        do {
            let result = try body(&collection)
            if collection.isEmpty {
                entries.remove(at: index)
            } else {
                entries.values[index].value = collection.value
            }
            return result
        } catch {
            entries.values[index].value = collection.value
            throw error
        }
    }

    /// Fails unless a key holds this kind or nothing.
    mutating func check<Kind: Collected>(_ key: Bytes, is kind: Kind.Type) throws(RedisError) {
        if let index = find(key), Kind(entries.values[index].value) == nil { throw .wrongType }
    }

    /// Deletes a key. Returns whether there was one.
    mutating func delete(_ key: Bytes) -> Bool {
        guard let index = find(key) else { return false }
        entries.remove(at: index)
        changes += 1
        return true
    }

    /// Whether a key has expired, although it is still stored.
    func isExpired(_ entry: Entry) -> Bool { entry.expires.map { nowInMilliseconds > $0 } ?? false }
}
