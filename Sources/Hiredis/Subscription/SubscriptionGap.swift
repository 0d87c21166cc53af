/// The reason why messages may be missing.
public enum SubscriptionGap: Sendable, Hashable {
    /// The connection broke. All topics are subscribed again, or will be when another gap follows.
    case reconnected
    /// The subscriber did not read fast enough, and this number of messages was dropped here.
    case overflow(missed: Int)
}
