// Slots: which server of a cluster serves a key.

/// The slots, as a server of a cluster knows them.
struct ClusterState: Hashable, Sendable {
    /// The address of this server, as `host:port`.
    var address: Bytes
    /// The servers of ranges of slots.
    var owners: [(slots: ClosedRange<Int>, address: Bytes)]
    /// The slots that this server gives away, and to which one.
    var migrating: [Int: Bytes] = [:]
    /// The slots that this server receives, and from which one.
    var importing: [Int: Bytes] = [:]

    func owner(of slot: Int) -> Bytes? { owners.last { $0.slots.contains(slot) }?.address }
    func serves(_ slot: Int) -> Bool { owner(of: slot) == address }

    static func == (one: ClusterState, other: ClusterState) -> Bool {
        one.address == other.address && one.migrating == other.migrating && one.importing == other.importing
            && one.owners.map(\.slots) == other.owners.map(\.slots)
            && one.owners.map(\.address) == other.owners.map(\.address)
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(address)
        hasher.combine(migrating)
        hasher.combine(importing)
        hasher.combine(owners.map(\.slots))
        hasher.combine(owners.map(\.address))
    }
}

extension SimulatedRedis {
    /// A key that moves from one server to another.
    public struct MovedKey: Hashable, Sendable {
        let key: Bytes
        let entry: Entry
    }

    /// Makes this server one of a cluster.
    ///
    /// - Parameters:
    ///   - address: Its address, as `host:port`.
    ///   - owners: The address of the server of each range of slots.
    public mutating func joinCluster(as address: Bytes, owners: [(slots: ClosedRange<Int>, address: Bytes)]) {
        cluster = ClusterState(address: address, owners: owners)
    }

    /// Sets the server of slots, which ends that they move.
    public mutating func setOwner(of slots: ClosedRange<Int>, to address: Bytes) {
        cluster?.owners.append((slots, address))
        for slot in slots {
            cluster?.migrating[slot] = nil
            cluster?.importing[slot] = nil
        }
    }

    /// Begins to give a slot to another server.
    public mutating func beginMigration(of slot: Int, to address: Bytes) { cluster?.migrating[slot] = address }

    /// Begins to receive a slot of another server.
    public mutating func beginImport(of slot: Int, from address: Bytes) { cluster?.importing[slot] = address }

    /// Removes a key that moves to another server.
    public mutating func takeKey(_ key: Bytes) -> MovedKey? {
        guard let index = find(key) else { return nil }
        let entry = entries.remove(at: index).value
        noteEffect(["DEL", key])
        commitEffects()
        return MovedKey(key: key, entry: entry)
    }

    /// Adds a key that another server has given away. Its replicas learn of it when they synchronize again.
    public mutating func putKey(_ moved: MovedKey) { entries[moved.key] = moved.entry }

    /// Returns the slot of a key: that of the part between the first `{` and the next `}`, if it is not empty.
    public static func slot(of key: Bytes) -> Int {
        var hashed = key.array[...]
        if let open = hashed.firstIndex(of: UInt8(ascii: "{")),
            let close = hashed[(open + 1)...].firstIndex(of: UInt8(ascii: "}")), close > open + 1
        {
            hashed = hashed[(open + 1)..<close]
        }
        return Int(crc16(hashed) % 16384)
    }

    /// CRC-16 with the polynomial 0x1021, as in XMODEM.
    private static func crc16(_ bytes: ArraySlice<UInt8>) -> UInt16 {
        bytes.reduce(0) { checksum, byte in
            (0..<8).reduce(checksum ^ UInt16(byte) << 8) { value, _ in
                value & 0x8000 != 0 ? value << 1 ^ 0x1021 : value << 1
            }
        }
    }
}

extension SimulatedRedis {
    /// Fails with the redirection if another server serves the keys of a command.
    mutating func checkSlots(_ command: Command, _ words: [Bytes]) throws(RedisError) {
        guard let cluster else { return }
        let isAsking = takeAsking(command)
        let keys = command.keys(of: words)
        guard let first = keys.first else { return }
        let slot = Self.slot(of: first)
        guard keys.allSatisfy({ Self.slot(of: $0) == slot }) else { throw .crossSlot }
        guard let owner = cluster.owner(of: slot) else { throw RedisError("CLUSTERDOWN Hash slot not served") }
        let missing = keys.count { find($0) == nil }
        if owner == cluster.address {
            guard let target = cluster.migrating[slot], missing > 0 else { return }
            if missing < keys.count { throw Self.tryAgain }
            throw RedisError(Bytes("ASK \(slot) ") + target)
        }
        if cluster.importing[slot] != nil, isAsking {
            if keys.count > 1, missing > 0 { throw Self.tryAgain }
            return
        }
        if replication.role == .replica, let caller, clients[caller]?.readsReplica == true,
            !command.traits.contains(.writes)
        {
            return
        }
        throw RedisError(Bytes("MOVED \(slot) ") + owner)
    }

    private static let tryAgain = RedisError("TRYAGAIN Multiple keys request during rehashing of slot")

    /// Whether the client has sent ASKING just before.
    private mutating func takeAsking(_ command: Command) -> Bool {
        guard let caller, clients[caller]?.isAsking == true, command.name != "ASKING" else { return false }
        clients[caller]?.isAsking = false
        return true
    }

    /// Fails if a command of a script uses a key of another slot than those before.
    mutating func checkSlotsInScript(_ command: Command, _ words: [Bytes]) throws(RedisError) {
        guard let cluster, script != nil else { return }
        for key in command.keys(of: words) {
            let slot = Self.slot(of: key)
            guard cluster.serves(slot) || cluster.importing[slot] != nil else {
                throw RedisError("ERR Script attempted to access a non local key in a cluster node")
            }
            guard script?.slot ?? slot == slot else {
                throw RedisError("ERR Script attempted to access keys that do not hash to the same slot")
            }
            script?.slot = slot
        }
    }
}

extension Command {
    static let clusterCommands = [
        Command("ASKING", 1, .none, .notInScripts) { server, _ throws(RedisError) in
            try server.requireCluster()
            if let caller = server.caller { server.clients[caller]?.isAsking = true }
            return .ok
        },
        Command("READONLY", 1, .none, .notInScripts) { server, _ throws(RedisError) in
            try server.requireCluster()
            if let caller = server.caller { server.clients[caller]?.readsReplica = true }
            return .ok
        },
        Command("READWRITE", 1, .none, .notInScripts) { server, _ throws(RedisError) in
            try server.requireCluster()
            if let caller = server.caller { server.clients[caller]?.readsReplica = false }
            return .ok
        },
        Command("CLUSTER", -2, .none, .notInScripts) { server, words throws(RedisError) in
            try server.requireCluster()
            if words[1].isWord("KEYSLOT"), words.count == 3 {
                return .integer(Int64(SimulatedRedis.slot(of: words[2])))
            }
            if words[1].isWord("GETKEYSINSLOT"), words.count == 4 {
                let slot = try words[2].requireInteger()
                let count = try words[3].requireInteger()
                return .bulks(server.liveKeys.filter { SimulatedRedis.slot(of: $0) == slot }.prefix(Int(max(0, count))))
            }
            throw unknownSubcommand(words)
        },
    ]
}

extension SimulatedRedis {
    fileprivate func requireCluster() throws(RedisError) {
        guard cluster != nil else { throw RedisError("ERR This instance has cluster support disabled") }
    }
}
