// The settings of a coordinator, and their validation.
public import Hiredis

/// The settings of a ``Coordinator``. Every default is safe for production.
public struct CoordinatorConfiguration: Sendable {
    /// The time after its last heartbeat at which a session ends, and with it the leases of the
    /// process: 1 s to 100 years, default 15 s.
    ///
    /// Each session sends one heartbeat every third of the TTL. With a shorter TTL, the leases of a
    /// dead process are free sooner, but a process that is slow or cut off for a while loses its
    /// leases sooner too. When the server sends nothing for 5/12 of the TTL, but at least 1.25 s, while a
    /// heartbeat is outstanding, the client replaces the connection: one that is silently dead costs no
    /// session with a TTL of 3 s or more.
    public var ttl: Duration = .seconds(15)
    /// The number of partitions of the namespace, 1 to 1,024, default 1.
    ///
    /// All nodes must agree: Redis stores the number and refuses a coordinator with another one.
    /// Only a Redis Cluster benefits from more than 1.
    public var partitions = 1
    /// Whether waiters are woken through a pub/sub channel. Default true. Without it they poll
    /// every ``pollInterval``.
    public var usesWakeUps = true
    /// The interval at which waiters poll when there are no wake-ups: at least 10 ms, default 1 s.
    /// More than 100 years counts as 100 years.
    public var pollInterval: Duration = .seconds(1)
    /// The time within which the request of an operation that does not wait for other processes
    /// must be sent; otherwise the operation throws `.notConnected`. More than 0, default 10 s.
    /// More than 100 years counts as 100 years.
    ///
    /// It applies to `signal`, `destroy` and the like, and to acquires with a timeout of 0. They
    /// cannot be sent while there is no session, or while 512 requests of the session are in
    /// flight.
    public var callTimeout: Duration = .seconds(10)
    /// Whether waiters throw `.lost` when the session is lost. By default (`false`) they queue
    /// again in the next session.
    public var failsWaitersOnLoss = false
    /// The time for which a confirmed operation is remembered, to be carried out again if Redis loses it in a failover:
    /// 0 to 1 min. Default 30 s. It should be longer than replicas lag behind. 0: nothing is carried out again, and every
    /// loss is reported.
    public var repairTime: Duration = .seconds(30)
    /// The maximum number of bytes of the operations that are remembered, from 0. Default 8 MiB, in which about 25,000
    /// operations fit. The oldest are forgotten first.
    ///
    /// Each partition has an equal part of it, but not less than 1 MiB, unless this is less.
    public var repairBytes = 8 << 20
    /// How long an operation with a `Durability` waits for its confirmation before it throws `.notDurable`: more
    /// than 0, default 1 s. It should be longer than replicas lag behind. More than 100 years counts as 100 years.
    public var durabilityTimeout: Duration = .seconds(1)
    /// The name that ``Coordinator/inspect(_:limit:)`` reports for this process, besides its host
    /// and process id. Default: the name of the program.
    public var nodeName: String?
    /// The backends that receive the coordinator's logs, metrics and spans. The defaults are those
    /// that the process has bootstrapped.
    ///
    /// `docs/observability.md` lists all of them. The name of a resource is only in the log line about
    /// a call without a timeout that waits for long.
    public var instruments = RedisInstruments()

    /// Creates a configuration with the defaults.
    public init() {}

    func validate(namespace: String) throws(RedisDCError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(RedisDCError) {
            if !holds { throw RedisDCError(.invalidArgument, message()) }
        }
        try ResourceName.validate(namespace: namespace)
        try require(ttl >= .seconds(1), "ttl is \(ttl), expected at least 1 second")
        try require(ttl <= .maxWait, "ttl is \(ttl), expected at most 100 years")
        try require((1...1024).contains(partitions), "partitions is \(partitions), expected 1 to 1024")
        try require(pollInterval >= .milliseconds(10), "pollInterval is \(pollInterval), expected at least 10 ms")
        try require(callTimeout > .zero, "callTimeout is \(callTimeout), expected more than 0")
        try require(
            durabilityTimeout > .zero, "durabilityTimeout is \(durabilityTimeout), expected more than 0")
        try require(
            repairTime >= .zero && repairTime <= .seconds(60), "repairTime is \(repairTime), expected 0 to 1 minute")
        try require(repairBytes >= 0, "repairBytes is \(repairBytes), expected 0 or more")
    }
}
