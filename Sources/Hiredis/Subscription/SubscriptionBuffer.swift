/// The limits of the buffer for messages that a subscriber has not read, and the policy when it is
/// full.
///
/// Every subscriber has a buffer of its own, so that a slow one does not delay others.
public struct SubscriptionBuffer: Sendable, Hashable {
    /// The policy when the buffer is full.
    public enum Policy: Sendable, Hashable {
        /// The oldest messages are dropped, and a gap in their place says how many.
        case dropOldest
        /// The buffered messages stay, and new ones are dropped until the subscriber has read them
        /// all. A gap then says how many were dropped.
        case suspend
        /// The subscription ends with `.subscriberTooSlow` after the buffered messages.
        case fail
    }

    /// The maximum number of buffered messages, at least 1.
    public var messages: Int
    /// The maximum number of buffered payload bytes, at least 1. One message of any size is always
    /// accepted.
    public var bytes: Int
    /// The policy when the buffer is full.
    public var policy: Policy

    /// Makes a buffer. Default: 1,024 messages, 16 MiB, the oldest are dropped.
    public init(messages: Int = 1024, bytes: Int = 16 * 1024 * 1024, policy: Policy = .dropOldest) {
        self.messages = messages
        self.bytes = bytes
        self.policy = policy
    }

    /// 1,024 messages, 16 MiB; the oldest are dropped.
    public static let `default` = SubscriptionBuffer()
}
