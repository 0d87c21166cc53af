/// An event of a subscription.
public enum SubscriptionEvent: Sendable, Hashable {
    /// A message.
    case message(RedisMessage)
    /// Messages may be missing here. A subscriber that maintains a state from messages reads that
    /// state again now: all topics are subscribed again.
    case gap(SubscriptionGap)
}

/// The reason why messages may be missing.
public enum SubscriptionGap: Sendable, Hashable {
    /// The connection broke. All topics are subscribed again, or will be when another gap follows.
    case reconnected
    /// The subscriber did not read fast enough, and this number of messages was dropped here.
    case overflow(missed: Int)
}
