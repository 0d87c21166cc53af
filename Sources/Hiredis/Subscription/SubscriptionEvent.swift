/// An event of a subscription.
public enum SubscriptionEvent: Sendable, Hashable {
    /// A message.
    case message(RedisMessage)
    /// Messages may be missing here. A subscriber that maintains a state from messages reads that
    /// state again now: all topics are subscribed again.
    case gap(SubscriptionGap)
}
