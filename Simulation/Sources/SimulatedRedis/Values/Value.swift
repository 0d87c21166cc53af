// The values of keys.

/// The value of a key.
enum Value: Hashable, Sendable {
    case string(Bytes)
    case list(RedisList)
    case hash(RedisHash)
    case set(RedisSet)
    case sortedSet(SortedSet)

    /// The name of the type, as TYPE replies it.
    var typeName: Bytes {
        switch self {
        case .string: "string"
        case .list: "list"
        case .hash: "hash"
        case .set: "set"
        case .sortedSet: "zset"
        }
    }

    /// The number of bytes in the value, and of elements.
    var size: (bytes: Int, elements: Int) {
        switch self {
        case .string(let bytes): (bytes.count, 0)
        case .list(let list): (list.size, list.count)
        case .hash(let hash): (hash.size, 2 * hash.count)
        case .set(let set): (set.size, set.count)
        case .sortedSet(let set): (set.size, 2 * set.count)
        }
    }
}

/// A type of values that have elements. A key whose value loses the last one is deleted.
protocol Collected {
    init()
    var isEmpty: Bool { get }
    init?(_ value: Value)
    var value: Value { get }
}

extension RedisList: Collected {
    init?(_ value: Value) {
        guard case .list(let list) = value else { return nil }
        self = list
    }
    var value: Value { .list(self) }
}

extension RedisHash: Collected {
    init?(_ value: Value) {
        guard case .hash(let hash) = value else { return nil }
        self = hash
    }
    var value: Value { .hash(self) }
}

extension RedisSet: Collected {
    init?(_ value: Value) {
        guard case .set(let set) = value else { return nil }
        self = set
    }
    var value: Value { .set(self) }
}

extension SortedSet: Collected {
    init?(_ value: Value) {
        guard case .sortedSet(let set) = value else { return nil }
        self = set
    }
    var value: Value { .sortedSet(self) }
}
