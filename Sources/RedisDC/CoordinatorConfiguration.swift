// How a coordinator behaves, and what it tells.
public import Hiredis

/// How a ``Coordinator`` behaves. Every default is safe for production.
public struct CoordinatorConfiguration: Sendable {
    /// How long Redis keeps what this process holds when its heartbeats stop. At least 1 s, at most 100 years, default 15 s.
    /// A heartbeat is sent every third of it, one for everything.
    ///
    /// A shorter one frees the holdings of a dead process sooner, and takes a process for dead sooner that is only slow.
    public var ttl: Duration = .seconds(15)
    /// Into how many parts the namespace is divided, 1 to 1,024. Default 1. All nodes must agree: Redis keeps the number,
    /// and a coordinator with another one is refused. Only a Redis Cluster wants more than 1.
    public var partitions = 1
    /// Whether waiters hear of their turn on a pub/sub channel. Default true. Without, they ask every `pollInterval`.
    public var usesWakeUps = true
    /// How often waiters ask when there are no wake-ups. Default 1 s.
    public var pollInterval: Duration = .seconds(1)
    /// How long an operation that is not a wait may wait for a connection before it throws `.notConnected`. Default 10 s.
    public var callTimeout: Duration = .seconds(10)
    /// What happens to waiters when the session is lost: they queue anew in the next session (false, the default), or
    /// throw `.lost`.
    public var failsWaitersOnLoss = false
    /// What `inspect` shows of this process, besides its host and process id. Default: the name of the program.
    public var nodeName: String?
    /// Where it logs, counts and traces to. The defaults are what the process has bootstrapped; the logger is passed in.
    ///
    /// Log keys begin with `redisdc_`. Metrics: `redisdc_grants`, `redisdc_wait_duration`, `redisdc_hold_duration`,
    /// `redisdc_waiting`, `redisdc_sessions_lost`, `redisdc_leases_lost`, `redisdc_retries`. Spans: `redisdc wait` and
    /// `redisdc hold`. No name of a semaphore or mutex is in any of them.
    public var instruments = RedisInstruments()

    public init() {}

    func validate(namespace: String) throws(RedisDCError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(RedisDCError) {
            if !holds { throw RedisDCError(.invalidArgument, message()) }
        }
        try ResourceName.validate(namespace)
        try require(
            !namespace.utf8.contains(UInt8(ascii: ":")), "a namespace has no colon, this one is \"\(namespace)\"")
        try require(ttl >= .seconds(1), "ttl is \(ttl), expected at least 1 second")
        try require(ttl <= .maxWait, "ttl is \(ttl), expected at most 100 years")
        try require((1...1024).contains(partitions), "partitions is \(partitions), expected 1 to 1024")
        try require(pollInterval >= .milliseconds(10), "pollInterval is \(pollInterval), expected at least 10 ms")
        try require(callTimeout > .zero, "callTimeout is \(callTimeout), expected more than 0")
    }
}

/// Why a session was lost.
public enum SessionLoss: Sendable, Hashable, CustomStringConvertible {
    /// Its heartbeats did not reach Redis in time.
    case expired
    /// Redis does not know it any more: its data were deleted or rolled back.
    case dataLost

    public var description: String {
        switch self {
        case .expired: "its heartbeats did not reach Redis in time"
        case .dataLost: "Redis has lost its data"
        }
    }
}

/// What happens to a coordinator. More cases may be added: switch over it with a `default`.
public enum CoordinatorEvent: Sendable {
    /// A session with Redis has begun.
    case sessionStarted(id: String)
    /// Everything that was held is lost, and the bodies that held it are cancelled. A new session begins by itself.
    case sessionLost(id: String, SessionLoss)
    /// Redis refuses a session: the coordinator goes on trying.
    case sessionRefused(RedisDCError)
    /// Redis has lost data of this namespace: permits that were signalled may be gone, and resources are made anew by those
    /// who say how.
    case dataLost
}
