/// The subject of a subscription: a channel, a pattern or a sharded channel. A string literal is a
/// channel.
public struct SubscriptionTopic: Sendable, Hashable, ExpressibleByStringInterpolation {
    /// The kind of a topic.
    public enum Kind: Sendable, Hashable {
        /// One channel.
        case channel
        /// All channels whose names match a glob such as `match:*`.
        case pattern
        /// A channel of the cluster shard that its name hashes to (`SPUBLISH`, Redis 7).
        case shard
    }

    /// The kind of the topic.
    public var kind: Kind
    /// The name of the channel, or the glob.
    public var name: String

    /// Makes a topic.
    public init(_ kind: Kind, _ name: String) {
        self.kind = kind
        self.name = name
    }

    /// Makes a channel from a string literal.
    public init(stringLiteral value: String) { self.init(.channel, value) }

    /// Whether two topics have the same kind and the same bytes as names, as the server compares
    /// them. `String` also considers different bytes equal, such as an accented letter and a letter
    /// followed by its accent.
    public static func == (left: Self, right: Self) -> Bool {
        left.kind == right.kind && left.name.utf8.elementsEqual(right.name.utf8)
    }

    /// Hashes the kind and the bytes of the name.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
        var name = name
        name.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// A channel.
    public static func channel(_ name: String) -> Self { Self(.channel, name) }
    /// All channels whose names match a glob.
    public static func pattern(_ glob: String) -> Self { Self(.pattern, glob) }
    /// A sharded channel.
    public static func shard(_ name: String) -> Self { Self(.shard, name) }
}
