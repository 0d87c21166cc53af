// The namespace, its partitions, and the form of their keys in Redis.

/// A namespace, divided into a fixed number of partitions, each in one slot of a cluster.
package struct Namespace: Sendable, Hashable {
    package let name: String
    /// 1 to 1,024. Within one partition, an operation on several names is atomic.
    package let partitions: Int
    /// The first part of all keys: `rdc` for coordination, `ql` for mailboxes, so that both can use the same namespace.
    private let prefix: String

    package init(_ name: String, partitions: Int, prefix: String = "rdc") {
        self.name = name
        self.partitions = partitions
        self.prefix = prefix
    }

    /// The partition of a name: FNV-1a, 32 bits, over its UTF-8 up to the first `#`, modulo the number of partitions.
    /// Names that belong together, such as `orders` and `orders#arrived`, are in one partition.
    package func partition(of name: String) -> Int {
        guard partitions > 1 else { return 0 }
        var hash: UInt32 = 2_166_136_261
        for byte in name.utf8.prefix(while: { $0 != UInt8(ascii: "#") }) { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        return Int(hash % UInt32(partitions))
    }

    /// A key or channel of a partition. The part in braces is a hash tag.
    package func key(_ suffix: String, partition: Int) -> String { "\(prefix):{\(name):\(partition)}:\(suffix)" }
}

/// Returns 128 random bits as 32 hexadecimal digits: the id of a sender, a send or an epoch.
package func randomID() -> String {
    var generator = SystemRandomNumberGenerator()
    return [generator.next(), generator.next()].map { (half: UInt64) in
        let digits = String(half, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
}

/// Returns 95 random bits as 16 letters and digits: the id of an engine's session, which is part of
/// many names.
package func randomSessionID() -> String {
    let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    var generator = SystemRandomNumberGenerator()
    return String((0..<16).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &generator)] })
}
