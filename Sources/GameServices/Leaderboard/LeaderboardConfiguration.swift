public import Hiredis

/// The settings of a ``Leaderboard``. Nodes that use the same leaderboard must use the same settings.
public struct LeaderboardConfiguration: Sendable {
    /// The effect of a further score of the same name.
    public enum Mode: String, Sendable, CaseIterable {
        /// The better score stays.
        case best
        /// The new score replaces the former one.
        case latest
        /// The scores are added.
        case sum
    }

    /// Which of two scores is better.
    public enum Order: String, Sendable, CaseIterable {
        /// The higher score, as with points.
        case higherIsBetter
        /// The lower score, as with times.
        case lowerIsBetter
    }

    /// The effect of a further score of the same name. Redis stores it with the first score and refuses
    /// any other. Default `.best`.
    public var mode = Mode.best
    /// Which of two scores is better. Redis stores it with the first score and refuses any other.
    /// Default `.higherIsBetter`.
    public var order = Order.higherIsBetter
    /// The windows in which each score is ranked, 1 to 8. Default: all time.
    ///
    /// A node whose settings lack a window does not submit to it.
    public var windows: Set<LeaderboardWindow> = [.allTime]
    /// The time for which Redis keeps a ranking after the end of its window, 1 min to 10 years.
    /// Default 62 days, so that the previous month can be read all the time.
    public var retention: Duration = .seconds(62 * 86400)
    /// The time for which Redis keeps the answer to a submit with a caller's id, 1 min to 366 days.
    /// Within this time, repeating the submit has no second effect. Default 1 hour.
    public var submitIDLifetime: Duration = .seconds(3600)
    /// The maximum time of an operation with all retries, from 1 ms. After it the operation throws.
    /// Default 10 s.
    public var callTimeout: Duration = .seconds(10)
    /// The time for which a handle remembers a confirmed submit or removal, to repeat it if Redis loses it
    /// in a failover: 0 to 1 min. Default 30 s. It should be longer than replicas lag behind. 0: nothing
    /// is repeated.
    public var repairTime: Duration = .seconds(30)
    /// The maximum number of bytes of the changes that a handle remembers, from 0. Default 8 MiB, in which
    /// about 20,000 submits fit. The oldest are forgotten first.
    public var repairBytes = 8 << 20
    /// The backends that log, count and time submits and reads: see the client's configuration. Names and
    /// scores are never included.
    ///
    /// Metrics: `leaderboard_submits`, `leaderboard_submit_duration`, `leaderboard_reads`,
    /// `leaderboard_repaired`.
    public var instruments = RedisInstruments()

    /// Creates a configuration with the default values.
    public init() {}

    /// - Throws: `.invalidArgument`, with the name of the property and its allowed range.
    func validate() throws(GameServiceError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(GameServiceError) {
            if !holds { throw GameServiceError(.invalidArgument, message()) }
        }
        try require((1...8).contains(windows.count), "windows has \(windows.count) windows, expected 1 to 8")
        try require(
            (.seconds(60) ... .seconds(3660 * 86400)).contains(retention),
            "retention is \(retention), expected 1 min to 10 years")
        try require(
            (.seconds(60) ... .seconds(366 * 86400)).contains(submitIDLifetime),
            "submitIDLifetime is \(submitIDLifetime), expected 1 min to 366 days")
        try require(callTimeout >= .milliseconds(1), "callTimeout is \(callTimeout), expected 1 ms or more")
        try require(
            repairTime >= .zero && repairTime <= .seconds(60), "repairTime is \(repairTime), expected 0 to 1 minute")
        try require(repairBytes >= 0, "repairBytes is \(repairBytes), expected 0 or more")
    }

    /// The time for which answers to submits without a caller's id are kept: longer than any such
    /// submit is retried.
    var ownIDLifetime: Duration { max(.seconds(60), min(callTimeout, .seconds(86400)) * 4) }

    /// The factor by which scores are stored, so that a lower stored score is better.
    var direction: Int { order == .higherIsBetter ? -1 : 1 }

    /// The rules as a script stores them.
    var rules: String { "\(mode.rawValue) \(direction)" }
}
