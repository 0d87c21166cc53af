public import Hiredis

/// The settings of a ``PostOffice``. Every default is safe for production.
public struct PostOfficeConfiguration: Sendable {
    /// The number of partitions of the namespace, 1 to 1,024. Default 1.
    ///
    /// All nodes must use the same number: Redis stores it and refuses any other. Use more than 1
    /// only with a Redis Cluster: a send is atomic within a partition, and eventually complete
    /// across several.
    public var partitions = 1
    /// The limits of mailboxes that have none of their own. All nodes should use the same limits.
    public var limits = MailboxLimits()
    /// Whether listeners are notified of messages on a pub/sub channel. Default `true`. Otherwise
    /// they read every ``pollInterval``.
    public var usesWakeUps = true
    /// The interval at which waiting listeners check for messages without notifications, at least
    /// 10 ms. Default 1 s.
    public var pollInterval: Duration = .seconds(1)
    /// The interval at which waiting listeners check for messages despite notifications, in case a
    /// notification was lost without a trace; at least 1 s. Default 30 s.
    public var recheckInterval: Duration = .seconds(30)
    /// The time for which the subscription is kept after the last listener has ended, because
    /// another one usually follows. Default 10 s.
    public var subscriptionLinger: Duration = .seconds(10)
    /// The maximum time, with all retries, of an operation that does not wait for messages. After
    /// it the operation throws. Default 10 s.
    public var callTimeout: Duration = .seconds(10)
    /// The time for which Redis keeps the answer to a send with a caller's id, at least 1 min.
    /// Within this time, repeating the send has no second effect. Default 10 min.
    public var sendIDLifetime: Duration = .seconds(600)
    /// The age at which any running post office takes over an unfinished cross-partition send, or a
    /// send that was due later and that another one has begun to carry out: at least 100 ms. Default
    /// 15 s.
    ///
    /// With more than 16 partitions, several rounds are needed to visit all of them.
    public var takeOverAfter: Duration = .seconds(15)
    /// The maximum number of sends that wait in each partition to be due later: 0 to 100,000,000. Default 1,000,000. Redis
    /// keeps each of them with its messages.
    public var maxScheduledSends = 1_000_000
    /// The time for which a confirmed send is remembered, to be sent again if Redis loses it in a failover: 0 to 1 min.
    /// Default 30 s. It should be longer than replicas lag behind. 0: nothing is sent again.
    public var repairTime: Duration = .seconds(30)
    /// The maximum number of bytes of the sends that are remembered, from 0. Default 8 MiB. The oldest are forgotten first.
    ///
    /// Each partition has an equal part of it, but not less than 2 MiB, in which the largest send fits.
    public var repairBytes = 8 << 20
    /// The backends that log, count and trace sends, deliveries and waits: by default those that the
    /// process has bootstrapped. `docs/observability.md` lists all of them. Names of mailboxes and
    /// contents of messages are never included.
    public var instruments = RedisInstruments()
    /// The maximum size of a message's body in bytes, 0 to 1,048,576 (1 MiB). Default 1 MiB.
    ///
    /// Redis serves no one else while it stores a message: 1 MiB takes about 2 ms. For larger data,
    /// store it elsewhere and send its name.
    public var maxMessageBytes = maxMessageBytesLimit

    static let maxMessageBytesLimit = 1 << 20

    /// Creates a configuration with the default values.
    public init() {}

    /// - Throws: `.invalidArgument`, with the name of the property and its allowed range.
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
        try require(
            repairTime >= .zero && repairTime <= .seconds(60), "repairTime is \(repairTime), expected 0 to 1 minute")
        try require(repairBytes >= 0, "repairBytes is \(repairBytes), expected 0 or more")
        try require(
            (0...100_000_000).contains(maxScheduledSends),
            "maxScheduledSends is \(maxScheduledSends), expected 0 to 100,000,000")
        try require(takeOverAfter >= .milliseconds(100), "takeOverAfter is \(takeOverAfter), expected at least 100 ms")
        try require(
            (0...Self.maxMessageBytesLimit).contains(maxMessageBytes),
            "maxMessageBytes is \(maxMessageBytes), expected 0 to \(Self.maxMessageBytesLimit)")
    }
}
