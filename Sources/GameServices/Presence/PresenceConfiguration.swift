import CoordinationBase
public import Hiredis

/// The settings of ``Presence``. Every default is safe for production.
public struct PresenceConfiguration: Sendable {
    /// How long the objects of a process that has died remain, 1 s to 1 h. Default 15 s.
    ///
    /// Redis' clock decides. A process that is stopped for longer, or cannot reach Redis for longer,
    /// loses its session in the same way. A connection that is silently dead costs no session with a
    /// TTL of 3 s or more: an unanswered heartbeat replaces it, see `RedisConfiguration.silenceLimit`.
    public var ttl: Duration = .seconds(15)
    /// The interval at which a process renews its sessions and looks for objects that must end, at
    /// least 100 ms and at most half of ``ttl``; `nil` is a third of ``ttl``. Default `nil`.
    public var heartbeatInterval: Duration?
    /// The maximum time of an operation with all retries. Default 10 s.
    public var callTimeout: Duration = .seconds(10)
    /// How long a bucket that this process no longer uses stays open, because it is often used again
    /// soon. Default 10 s.
    public var linger: Duration = .seconds(10)
    /// How many changes Redis keeps for subscribers that have missed some, 1 to 100,000. Default
    /// 4,096. A subscriber that has missed more reads a snapshot.
    public var maxLoggedChanges = 4096
    /// How many bytes of changes Redis keeps at most, 1 or more. Default 1 MiB.
    public var maxLoggedBytes = 1 << 20
    /// The time for which confirmed operations are remembered, to be repeated if Redis loses them in a
    /// failover: 0 to 1 min. Default 30 s. It should be longer than replicas lag behind. 0: nothing is
    /// repeated, and every loss is reported (``PresenceBucket/losses()``).
    public var repairTime: Duration = .seconds(30)
    /// The maximum number of bytes of the operations that are remembered for each bucket, from 0. Default
    /// 1 MiB. The oldest are forgotten first.
    public var repairBytes = 1 << 20
    /// The backends that log and count: see the client's configuration. Names and values are never
    /// included.
    ///
    /// Metrics: `presence_operations`, `presence_batches`, `presence_swept` (objects that the sweeps
    /// of this process have ended), `presence_losses` (sessions), `presence_gaps` (reported to
    /// subscribers), `presence_snapshots`, `presence_buckets` (gauge), `presence_repaired`.
    public var instruments = RedisInstruments()

    /// Creates a configuration with the default values.
    public init() {}

    var heartbeat: Duration { heartbeatInterval ?? ttl / 3 }

    /// The time after which a heartbeat without a reply is sent again, and its connection is suspected to be
    /// dead: half of what is left of the TTL when the heartbeat is due.
    var heartbeatTimeout: Duration { (ttl - heartbeat) / 2 }

    /// - Throws: `.invalidArgument`, with the name of the property and its allowed range.
    func validate() throws(GameServiceError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(GameServiceError) {
            if !holds { throw GameServiceError(.invalidArgument, message()) }
        }
        try require((.seconds(1) ... .seconds(3600)).contains(ttl), "ttl is \(ttl), expected 1 s to 1 h")
        try require(
            heartbeat >= .milliseconds(100) && heartbeat <= ttl / 2,
            "heartbeatInterval is \(heartbeat), expected at least 100 ms and at most half of ttl")
        try require(callTimeout > .zero, "callTimeout is \(callTimeout), expected more than 0")
        try require(linger >= .zero, "linger is \(linger), expected 0 or more")
        try require(
            (1...100_000).contains(maxLoggedChanges), "maxLoggedChanges is \(maxLoggedChanges), expected 1 to 100,000")
        try require(
            repairTime >= .zero && repairTime <= .seconds(60), "repairTime is \(repairTime), expected 0 to 1 minute")
        try require(repairBytes >= 0, "repairBytes is \(repairBytes), expected 0 or more")
        try require(maxLoggedBytes >= 1, "maxLoggedBytes is \(maxLoggedBytes), expected 1 or more")
    }
}
