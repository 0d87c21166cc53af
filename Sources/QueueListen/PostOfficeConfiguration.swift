// How a post office behaves.
public import Hiredis

/// How a ``PostOffice`` behaves. Every default is safe for production.
public struct PostOfficeConfiguration: Sendable {
    /// Into how many parts the namespace is divided, 1 to 1,024. Default 1. All nodes must agree: Redis keeps the number,
    /// and who is configured otherwise is refused. Only a Redis Cluster wants more than 1: a send is atomic within a
    /// partition, and eventually complete across several.
    public var partitions = 1
    /// The bounds of mailboxes that have none of their own. All nodes should agree.
    public var limits = MailboxLimits()
    /// Whether listeners hear of messages on a pub/sub channel. Default true. Without, they look every `pollInterval`.
    public var usesWakeUps = true
    /// How often those who listen look when there are no wake-ups. Default 1 s, at least 10 ms.
    public var pollInterval: Duration = .seconds(1)
    /// How often they look although there are, in case one was lost without a trace. Default 30 s, at least 1 s.
    public var recheckInterval: Duration = .seconds(30)
    /// How long the subscription stays when nobody listens any more, as the next usually comes soon. Default 10 s.
    public var subscriptionLinger: Duration = .seconds(10)
    /// How long an operation that is not a wait may take, retries and all, before it throws. Default 10 s.
    public var callTimeout: Duration = .seconds(10)
    /// For how long the answer to a send with an id of the caller's own is kept: within it, the same send has no second
    /// effect. Default 10 min, at least 1 min.
    public var sendIDLifetime: Duration = .seconds(600)
    /// With several partitions: a send across them that was begun so long ago and is not finished is finished by any post
    /// office that runs; with more than 16 partitions it takes its rounds to look through them. Default 15 s, at least
    /// 100 ms.
    public var takeOverAfter: Duration = .seconds(15)
    /// Where sends, deliveries and waits are logged, counted and traced to; see the client's. No name of a mailbox and
    /// nothing of a message is in it.
    ///
    /// Metrics: `queuelisten_sends`, `queuelisten_receipts`, `queuelisten_send_duration`, `queuelisten_deliveries`,
    /// `queuelisten_listen_duration`, `queuelisten_listeners`, `queuelisten_gaps`, `queuelisten_taken_over`,
    /// `queuelisten_given_up`. Spans: `queuelisten send` and `queuelisten listen`.
    public var instruments = RedisInstruments()
    /// Most bytes of a message's body. Default 16 MiB.
    public var maxMessageBytes = 16 * 1024 * 1024

    public init() {}

    func validate(namespace: String) throws(QueueListenError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(QueueListenError) {
            if !holds { throw QueueListenError(.invalidArgument, message()) }
        }
        try MailName.validate(namespace, "namespace")
        try require(
            !namespace.utf8.contains(UInt8(ascii: ":")), "a namespace has no colon, this one is \"\(namespace)\"")
        try require((1...1024).contains(partitions), "partitions is \(partitions), expected 1 to 1024")
        try limits.validate()
        try require(pollInterval >= .milliseconds(10), "pollInterval is \(pollInterval), expected at least 10 ms")
        try require(recheckInterval >= .seconds(1), "recheckInterval is \(recheckInterval), expected at least 1 s")
        try require(subscriptionLinger >= .zero, "subscriptionLinger is \(subscriptionLinger), expected 0 or more")
        try require(callTimeout > .zero, "callTimeout is \(callTimeout), expected more than 0")
        try require(sendIDLifetime >= .seconds(60), "sendIDLifetime is \(sendIDLifetime), expected at least 1 minute")
        try require(takeOverAfter >= .milliseconds(100), "takeOverAfter is \(takeOverAfter), expected at least 100 ms")
        try require(maxMessageBytes >= 0, "maxMessageBytes is \(maxMessageBytes), expected 0 or more")
    }
}
