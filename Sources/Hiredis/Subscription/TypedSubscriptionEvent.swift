/// An event of a subscription whose messages are decoded.
public enum TypedSubscriptionEvent<Message> {
    /// A decoded message, and the message that it was decoded from.
    case message(Message, from: RedisMessage)
    /// Messages may be missing here: see ``SubscriptionEvent/gap(_:)``.
    case gap(SubscriptionGap)
    /// A message that cannot be decoded, and the codec's error. The sequence continues.
    case undecodable(RedisMessage, any Error)
}

extension TypedSubscriptionEvent: Sendable where Message: Sendable {}
