public import Hiredis

/// The settings of a ``Matchmaker``.
public struct MatchmakerConfiguration: Sendable {
    /// The number of tickets in a match, 2 to 16. Redis stores it with the first ticket and refuses
    /// any other. Default 2.
    public var size = 2
    /// The window of ratings. Redis stores it with the first ticket and refuses any other. Default:
    /// all ratings match.
    ///
    /// A window has at most 64 / ``size`` different distances, which bounds the work of a script.
    public var window = MatchWindow.unlimited
    /// The time without a sign of life after which a node's tickets end as ``TicketState/lost``, 1 s
    /// to 1 h. Default 10 s. The node renews it every third of this time.
    public var nodeTTL: Duration = .seconds(10)
    /// The time after which any node sends an outcome that its own node has not sent, 100 ms to 1 h.
    /// Default 3 s.
    public var takeOverAfter: Duration = .seconds(3)
    /// The time for which an ended ticket is remembered and an outcome is sent again if it cannot be
    /// sent, 1 min to 1 day. Default 10 min.
    ///
    /// It must not exceed the post office's `sendIDLifetime`: then a recipient never gets an outcome
    /// twice.
    public var endedTicketLifetime: Duration = .seconds(600)
    /// The maximum time of an operation with all retries, from 1 ms. After it the operation throws.
    /// Default 10 s.
    public var callTimeout: Duration = .seconds(10)
    /// The time for which a node remembers what it was told about a ticket, to repeat it if Redis loses it
    /// in a failover: 0 to 1 min. Default 30 s. It should be longer than replicas lag behind. 0: nothing
    /// is repeated.
    public var repairTime: Duration = .seconds(30)
    /// The maximum number of bytes of what a node remembers, from 0. Default 8 MiB, in which about 15,000
    /// tickets fit. The oldest are forgotten first.
    public var repairBytes = 8 << 20
    /// The backends that log and count: see the client's configuration. Names of players are never
    /// included.
    ///
    /// Metrics: `matchmaker_tickets`, `matchmaker_matches`, `matchmaker_ended` (sent outcomes that are
    /// not matches), `matchmaker_given_up`, `matchmaker_repaired`, `matchmaker_lost`.
    public var instruments = RedisInstruments()

    /// Creates a configuration with the default values.
    public init() {}

    /// - Throws: `.invalidArgument`, with the name of the property and its allowed range.
    func validate(sendIDLifetime: Duration) throws(GameServiceError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(GameServiceError) {
            if !holds { throw GameServiceError(.invalidArgument, message()) }
        }
        let limit = MatchWindow.limit
        try require((2...16).contains(size), "size is \(size), expected 2 to 16")
        try require((0...limit).contains(window.start), "window.start is \(window.start), expected 0 to 2^40")
        try require((0...limit).contains(window.step), "window.step is \(window.step), expected 0 to 2^40")
        try require(
            window.max >= window.start && window.max <= limit,
            "window.max is \(window.max), expected window.start to 2^40")
        try require(
            (.milliseconds(1) ... .seconds(86400)).contains(window.interval),
            "window.interval is \(window.interval), expected 1 ms to 1 day")
        try require(
            window.widenings < 64 / size,
            "the window has \(window.widenings + 1) distances, expected at most \(64 / size) for matches of \(size): "
                + "use a larger step")
        try require(
            (.seconds(1) ... .seconds(3600)).contains(nodeTTL), "nodeTTL is \(nodeTTL), expected 1 s to 1 h")
        try require(
            (.milliseconds(100) ... .seconds(3600)).contains(takeOverAfter),
            "takeOverAfter is \(takeOverAfter), expected 100 ms to 1 h")
        try require(
            (.seconds(60) ... .seconds(86400)).contains(endedTicketLifetime),
            "endedTicketLifetime is \(endedTicketLifetime), expected 1 min to 1 day")
        try require(
            endedTicketLifetime <= sendIDLifetime,
            "endedTicketLifetime is \(endedTicketLifetime), expected at most the post office's sendIDLifetime, "
                + "\(sendIDLifetime)")
        try require(callTimeout >= .milliseconds(1), "callTimeout is \(callTimeout), expected 1 ms or more")
        try require(
            repairTime >= .zero && repairTime <= .seconds(60), "repairTime is \(repairTime), expected 0 to 1 minute")
        try require(repairBytes >= 0, "repairBytes is \(repairBytes), expected 0 or more")
    }

    /// The rules as the scripts store them.
    var rules: String {
        "\(size) \(window.start) \(window.step) \(window.interval.wholeMilliseconds) \(window.max)"
    }
}
