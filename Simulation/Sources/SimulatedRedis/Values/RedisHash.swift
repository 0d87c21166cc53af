// A hash, and a set: fields with values, and members.

/// A hash: fields with values. Redis gives its fields no order; where one is needed, it is that of a checksum of the field,
/// which is the same in each run.
struct RedisHash: Hashable, Sendable {
    private(set) var fields: [Bytes: Bytes] = [:]
    /// The number of bytes in all fields and values.
    private(set) var size = 0

    var count: Int { fields.count }
    var isEmpty: Bool { fields.isEmpty }

    subscript(field: Bytes) -> Bytes? { fields[field] }

    /// Sets a field. Returns whether it is new.
    @discardableResult
    mutating func set(_ field: Bytes, _ value: Bytes) -> Bool {
        size += value.count
        if let old = fields.updateValue(value, forKey: field) {
            size -= old.count
            return false
        }
        size += field.count
        return true
    }

    /// Removes a field. Returns whether there was one.
    mutating func remove(_ field: Bytes) -> Bool {
        guard let old = fields.removeValue(forKey: field) else { return false }
        size -= field.count + old.count
        return true
    }

    /// All fields in their order.
    var ordered: [(field: Bytes, value: Bytes)] {
        let list = fields.map { (ScanPlace(of: $0.key), (field: $0.key, value: $0.value)) }
        return list.sorted { $0.0 < $1.0 }.map(\.1)
    }
}

/// A set of members.
struct RedisSet: Hashable, Sendable {
    private(set) var members: Set<Bytes> = []
    /// The number of bytes in all members.
    private(set) var size = 0

    var count: Int { members.count }
    var isEmpty: Bool { members.isEmpty }

    func contains(_ member: Bytes) -> Bool { members.contains(member) }

    /// Adds a member. Returns whether it is new.
    mutating func insert(_ member: Bytes) -> Bool {
        guard members.insert(member).inserted else { return false }
        size += member.count
        return true
    }

    /// Removes a member. Returns whether there was one.
    mutating func remove(_ member: Bytes) -> Bool {
        guard members.remove(member) != nil else { return false }
        size -= member.count
        return true
    }

    /// All members in their order.
    var ordered: [Bytes] {
        members.map { (ScanPlace(of: $0), $0) }.sorted { $0.0 < $1.0 }.map(\.1)
    }
}

/// The place of a name in the order in which SCAN and HSCAN visit names. A cursor is the checksum of the next name, so a
/// scan visits each name that exists from its beginning to its end, whatever else changes.
struct ScanPlace: Comparable {
    var checksum: UInt64
    var name: Bytes

    init(of name: Bytes) {
        var mixer = Mixer()
        mixer.mix(name)
        // Cursors fit into numbers of Lua.
        checksum = max(1, mixer.value & 0xFFFF_FFFF_FFFF)
        self.name = name
    }

    static func < (one: ScanPlace, other: ScanPlace) -> Bool {
        one.checksum != other.checksum ? one.checksum < other.checksum : one.name < other.name
    }
}
