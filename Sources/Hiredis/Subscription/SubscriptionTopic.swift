// What one can listen to, and what arrives.

/// A channel, a pattern or a sharded channel. A string literal is a channel.
public struct SubscriptionTopic: Sendable, Hashable, ExpressibleByStringInterpolation {
    public enum Kind: Sendable, Hashable {
        case channel
        /// A glob such as `match:*`.
        case pattern
        /// A channel of the shard that its name hashes to (`SPUBLISH`, Redis 7).
        case shard
    }

    public var kind: Kind
    public var name: String

    public init(_ kind: Kind, _ name: String) {
        self.kind = kind
        self.name = name
    }

    public init(stringLiteral value: String) { self.init(.channel, value) }

    // By the bytes, as the server compares. String takes an accented letter for equal to the letter and the accent.
    public static func == (left: Self, right: Self) -> Bool {
        left.kind == right.kind && left.name.utf8.elementsEqual(right.name.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
        var name = name
        name.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    public static func channel(_ name: String) -> Self { Self(.channel, name) }
    public static func pattern(_ glob: String) -> Self { Self(.pattern, glob) }
    public static func shard(_ name: String) -> Self { Self(.shard, name) }
}

/// A message as it was published.
public struct RedisMessage: Sendable, Hashable {
    /// The channel it was published to.
    public var channel: String
    /// The topic of this subscription that it matched.
    public var topic: SubscriptionTopic
    public var payload: [UInt8]

    public init(channel: String, topic: SubscriptionTopic, payload: [UInt8]) {
        self.channel = channel
        self.topic = topic
        self.payload = payload
    }

    /// The payload as text; bytes that are not UTF-8 become replacement characters.
    public var text: String { String(decoding: payload, as: UTF8.self) }
}

/// What a subscriber sees, in order.
public enum SubscriptionEvent: Sendable, Hashable {
    case message(RedisMessage)
    /// Messages may be missing here. Whoever keeps a state by them reads it anew now: the subscription stands again.
    case gap(SubscriptionGap)
}

public enum SubscriptionGap: Sendable, Hashable {
    /// The connection broke and all topics have been subscribed anew, or are about to be when another gap follows.
    case reconnected
    /// The subscriber did not read fast enough; so many messages were dropped here.
    case overflow(missed: Int)
}

/// How much may wait for a subscriber that does not read, and what happens beyond that.
///
/// Every subscriber has a buffer of its own; a slow one never delays another.
public struct SubscriptionBuffer: Sendable, Hashable {
    public enum Policy: Sendable, Hashable {
        /// The oldest message makes room, and a gap in its place counts the dropped ones.
        case dropOldest
        /// What has gathered stays; delivery is suspended until the subscriber has read it all. Then a gap counts what
        /// was passed over.
        case suspend
        /// The subscription ends with `.subscriberTooSlow` after what has gathered.
        case fail
    }

    /// Most messages that wait. At least 1.
    public var messages: Int
    /// Most payload bytes that wait, though one message always may.
    public var bytes: Int
    public var policy: Policy

    public init(messages: Int = 1024, bytes: Int = 16 * 1024 * 1024, policy: Policy = .dropOldest) {
        self.messages = messages
        self.bytes = bytes
        self.policy = policy
    }

    /// 1,024 messages, 16 MiB, drop the oldest.
    public static let `default` = SubscriptionBuffer()
}
