// Checksums and listings of the state, to recognize states and to compare servers.

/// A checksum of 128 bits. Equal states have equal ones, in each run; different states have different ones but for an
/// accident that no run sees.
public struct StateDigest: Hashable, Sendable {
    /// The first half.
    public let high: UInt64
    /// The second half.
    public let low: UInt64
}

/// The content of a key, in an order that does not depend on how it was made.
public struct DumpedKey: Hashable, Sendable {
    /// The key.
    public let key: Bytes
    /// The type, as TYPE replies it.
    public let type: Bytes
    /// The value: a string; the elements of a list; the fields of a hash, each before its value, in the order of the
    /// fields; the members of a set in their order; the members of a sorted set, each before its score.
    public let contents: [Bytes]
    /// The milliseconds until it expires, or -1.
    public let remaining: Int64
}

extension SimulatedRedis {
    /// A checksum of all that decides what the server will reply: the keys with the times until they expire, the scripts,
    /// the clients and the replication; but not the time itself.
    public var digest: StateDigest {
        StateDigest(high: checksum(seed: 1), low: checksum(seed: 2))
    }

    private func checksum(seed: UInt64) -> UInt64 {
        // A sum, because the storage of keys has no order.
        var keys: UInt64 = 0
        for (key, entry) in entries where !isExpired(entry) {
            var mixer = Mixer(seed: seed)
            mixer.mix(key)
            mixer.mix(UInt64(bitPattern: entry.expires.map { $0 - nowInMilliseconds } ?? -1))
            entry.value.mix(into: &mixer, seed: seed)
            keys &+= mixer.value
        }
        var mixer = Mixer(seed: seed)
        mixer.mix(keys)
        mixer.mix(scripts.keys.reduce(0) { $0 &+ Mixer.of($1, seed: seed) })
        mixer.mix(UInt64(bitPattern: offset))
        mixer.mix(isMaster ? 1 : 0)
        clients.mix(into: &mixer, now: now)
        return mixer.value
    }

    /// All keys with what they hold, in the order of their bytes.
    public func dump() -> [DumpedKey] {
        entries.filter { !isExpired($0.value) }.sorted { $0.key < $1.key }.map { key, entry in
            DumpedKey(
                key: key, type: entry.value.typeName, contents: entry.value.contents(settings.numberFormat),
                remaining: entry.expires.map { max(0, $0 - nowInMilliseconds) } ?? -1)
        }
    }
}

extension Mixer {
    fileprivate static func of(_ bytes: Bytes, seed: UInt64) -> UInt64 {
        var mixer = Mixer(seed: seed)
        mixer.mix(bytes)
        return mixer.value
    }
}

extension Value {
    fileprivate func contents(_ format: NumberFormat) -> [Bytes] {
        switch self {
        case .string(let bytes): [bytes]
        case .list(let list): Array(list.elements)
        case .hash(let hash): hash.fields.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }
        case .set(let set): set.members.sorted()
        case .sortedSet(let set): set.elements.flatMap { [$0.member, format.score($0.score)] }
        }
    }

    fileprivate func mix(into mixer: inout Mixer, seed: UInt64) {
        switch self {
        case .string(let bytes):
            mixer.mix(1)
            mixer.mix(bytes)
        case .list(let list):
            mixer.mix(2)
            for element in list.elements { mixer.mix(element) }
        case .hash(let hash):
            mixer.mix(3)
            mixer.mix(
                hash.fields.reduce(0) { sum, field in
                    var pair = Mixer(seed: seed)
                    pair.mix(field.key)
                    pair.mix(field.value)
                    return sum &+ pair.value
                })
        case .set(let set):
            mixer.mix(4)
            mixer.mix(set.members.reduce(0) { $0 &+ Mixer.of($1, seed: seed) })
        case .sortedSet(let set):
            mixer.mix(5)
            for element in set.elements {
                mixer.mix(element.score.bitPattern)
                mixer.mix(element.member)
            }
        }
    }
}

extension Clients {
    fileprivate func mix(into mixer: inout Mixer, now: Int64) {
        for id in all {
            guard let client = self[id] else { continue }
            mixer.mix(UInt64(id.number))
            for channel in client.channels { mixer.mix(channel) }
            for word in client.transaction?.commands.joined().map(\.self) ?? [] { mixer.mix(word) }
            guard let wait = client.wait else { continue }
            mixer.mix(UInt64(bitPattern: wait.deadline.map { $0 - now } ?? -1))
            switch wait.event {
            case .element(let keys, let fromEnd):
                for key in keys { mixer.mix(key) }
                mixer.mix(fromEnd ? 1 : 0)
            case .replicas(let count, let offset):
                mixer.mix(UInt64(count))
                mixer.mix(UInt64(bitPattern: offset))
            }
        }
        for id in waiting { mixer.mix(UInt64(id.number)) }
    }
}
