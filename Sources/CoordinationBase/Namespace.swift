// Where things live in Redis: the namespace, its partitions, and the keys of each.

/// A namespace of which everything lies in a fixed number of partitions, each in one slot of a cluster.
package struct Namespace: Sendable, Hashable {
    package let name: String
    /// 1 to 1,024. With one, everything can be atomic with everything.
    package let partitions: Int
    /// Whose keys these are: those of coordination and those of mailboxes may be in one namespace.
    private let prefix: String

    package init(_ name: String, partitions: Int, prefix: String = "rdc") {
        self.name = name
        self.partitions = partitions
        self.prefix = prefix
    }

    /// The partition of a name: FNV-1a, 32 bits, over its UTF-8 up to the first `#`, modulo the number of partitions. So
    /// what must act together is kept together: `orders` and `orders#arrived`.
    package func partition(of name: String) -> Int {
        guard partitions > 1 else { return 0 }
        var hash: UInt32 = 2_166_136_261
        for byte in name.utf8.prefix(while: { $0 != UInt8(ascii: "#") }) { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        return Int(hash % UInt32(partitions))
    }

    /// A key, or a channel, of a partition. The braces are a hash tag.
    package func key(_ suffix: String, partition: Int) -> String { "\(prefix):{\(name):\(partition)}:\(suffix)" }
}

/// 128 random bits as 32 hexadecimal digits: names a session, or a table's epoch.
package func randomID() -> String {
    var generator = SystemRandomNumberGenerator()
    return [generator.next(), generator.next()].map { (half: UInt64) in
        let digits = String(half, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
}
