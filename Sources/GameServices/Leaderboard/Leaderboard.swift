// Rankings of names by score, in Redis alone: no node keeps a cache.
import CoordinationBase
public import Hiredis

/// A ranking of names by score, shared by all nodes, for all time and for the current day, week and
/// month.
///
/// ```swift
/// var configuration = LeaderboardConfiguration()
/// configuration.windows = [.allTime, .weekly]
/// let board = try Leaderboard("maze", redis: redis, configuration: configuration)
/// let submission = try await board.submit(1200, for: "alice", id: "run-17")
/// print(submission.placements[.weekly]?.rank ?? 0)
/// let best = try await board.top(10, in: .weekly)
/// ```
///
/// **Guarantees**
/// - A submit takes effect in all windows or in none, and its answer contains the rank in each.
/// - A submit with an id has one effect, however often it is repeated and by whichever process,
///   within ``LeaderboardConfiguration/submitIDLifetime``; every repetition returns the first answer.
///   A submit without an id is repeated under an id of its own when its answer is lost.
/// - Among equal scores, the entry that reached the score first is ranked first, also after a step
///   of the clock.
/// - Redis's clock decides to which day, week or month a submit belongs, at the moment when it is
///   stored: there is no moment at which a submit is lost between two windows. The clocks of the
///   nodes do not matter.
/// - A failover loses nothing that a living process knows: the handle that has submitted remembers for
///   ``LeaderboardConfiguration/repairTime`` what Redis has confirmed. On each new connection, before
///   anything else is sent, it repeats what Redis lacks, in its order, in the periods in which it was
///   confirmed, and once. A confirmed removal is not undone by that. So keep one handle, or copies of
///   it, for the life of the process; with its last copy the memory ends.
/// - Every read is of one moment: ranks have no gaps and no duplicates. Only the entries of more
///   than 200 names are read in several steps.
///
/// **Limits**
/// - Scores are whole numbers from -2^53 to 2^53, which Redis stores exactly.
/// - A submit costs O(log n) for n entries in each window. A leaderboard is in one slot of a
///   cluster.
/// - The order of changes that are repeated after a failover is that of each process. Where several
///   processes change the entry of one name, the result may be that of another order.
/// - The last changes of a process that has died, and those that were older or more than the bounds,
///   are lost if Redis loses them.
/// - Ids of submits are kept in Redis until they expire, about 200 bytes each. At `maxmemory`, a
///   server with a `volatile-` policy evicts them before, and a repeated submit then has a second
///   effect: in the mode `.sum` it counts twice. The process itself repeats its last submits when
///   their answers are missing on a new connection. Use `noeviction`; `redisdc doctor` checks it.
///
/// Nothing is held: the death of a process loses nothing. If it dies during a submit, another
/// process can repeat the submit with the same id.
public struct Leaderboard: Sendable {
    /// The largest score; the smallest is its negative.
    public static let maxScore = 1 << 53
    /// The maximum number of entries or names in one read.
    public static let maxPageSize = 1000

    /// The name of the leaderboard.
    public let name: String
    /// The settings that the leaderboard was made with.
    public let configuration: LeaderboardConfiguration
    let keys: ServiceKeys
    let redis: any Redis
    let scripts: IdempotentScript
    let serverClock: ServerClock
    let instruments: LeaderboardInstruments
    /// What the copies of this handle remember; `nil` if nothing is repeated after a failover.
    let memory: LeaderboardMemory?

    /// Creates a handle of a leaderboard, whether it exists or not. Nothing is sent.
    ///
    /// - Parameters:
    ///   - name: 1 to 256 bytes of UTF-8 without control characters and braces.
    ///   - redis: the client, which must be running.
    ///   - namespace: separates this application's leaderboards from those of others in the same
    ///     Redis: 1 to 512 bytes of UTF-8 without control characters, braces and colons.
    ///   - configuration: the settings.
    /// - Throws: `.invalidArgument`.
    public init(
        _ name: String, redis: any Redis, namespace: String = "default",
        configuration: LeaderboardConfiguration = .init()
    ) throws(GameServiceError) {
        try self.init(name, redis: redis, namespace: namespace, configuration: configuration, serverClock: .init())
    }

    init(
        _ name: String, redis: any Redis, namespace: String, configuration: LeaderboardConfiguration,
        serverClock: ServerClock, clock: MonotonicClock = .continuous()
    ) throws(GameServiceError) {
        try configuration.validate()
        keys = try ServiceKeys(namespace: namespace, kind: "board", name: name)
        self.name = name
        self.redis = redis
        self.configuration = configuration
        self.serverClock = serverClock
        scripts = IdempotentScript(
            redis: redis, clock: clock, callTimeout: min(configuration.callTimeout, .maxWait))
        instruments = LeaderboardInstruments(configuration.instruments)
        memory = LeaderboardMemory(
            redis: redis, keys: keys, configuration: configuration, clock: clock, instruments: instruments)
    }

    // MARK: Submit

    /// Submits a score to all windows, and returns the rank in each.
    ///
    /// With all retries it takes at most ``LeaderboardConfiguration/callTimeout``. A cancelled call
    /// throws `.cancelled` immediately; a request that was already sent still takes effect.
    ///
    /// - Parameters:
    ///   - score: -2^53 to 2^53. In the mode `.sum` it is added to the entry's score.
    ///   - name: 1 to 512 bytes of UTF-8 without control characters and braces.
    ///   - id: identifies the submit, so that it can be repeated safely: 1 to 256 bytes of UTF-8
    ///     without control characters and braces. With `nil` the call generates one for its own
    ///     retries.
    /// - Throws: `.invalidArgument`; `.outOfRange` when a sum would leave the range (no window has
    ///   changed); `.conflict` when the id was used for another name or score, or when the
    ///   leaderboard has another mode or order; `.connectionLost` with `mayHaveRun`; and other
    ///   failures of a command.
    @discardableResult
    public func submit(
        _ score: Int, for name: String, id: String? = nil
    ) async throws(GameServiceError) -> LeaderboardSubmission {
        do throws(GameServiceError) {
            guard (-Self.maxScore...Self.maxScore).contains(score) else {
                throw GameServiceError(.invalidArgument, "the score is \(score), expected -2^53 to 2^53")
            }
            try ServiceKeys.validate(name, "name", maxBytes: 512)
            if let id { try ServiceKeys.validate(id, "submit id", maxBytes: 256) }
            return try await instruments.submitting { () async throws(GameServiceError) in
                try await store(
                    score, name, id: id ?? "own:" + randomID(),
                    answerLifetime: id == nil ? configuration.ownIDLifetime : configuration.submitIDLifetime)
            }
        } catch { throw error.prefixed("cannot submit to leaderboard \"\(self.name)\"") }
    }

    /// Submits a score that must be a whole number.
    ///
    /// - Throws: `.invalidArgument` if the score has a fraction, is not finite, or is beyond ±2^53;
    ///   otherwise the codes of the submit of an `Int`.
    @discardableResult
    public func submit(
        _ score: Double, for name: String, id: String? = nil
    ) async throws(GameServiceError) -> LeaderboardSubmission {
        guard let whole = Int(exactly: score) else {
            throw GameServiceError(
                .invalidArgument,
                "cannot submit to leaderboard \"\(self.name)\": the score is \(score), expected a whole number")
        }
        return try await submit(whole, for: name, id: id)
    }

    private func store(
        _ score: Int, _ name: String, id: String, answerLifetime: Duration
    ) async throws(GameServiceError) -> LeaderboardSubmission {
        let windows = configuration.windows.sorted { $0.description < $1.description }
        let end = scripts.clock.now() + scripts.callTimeout
        return try await confirming(until: end) { (call) async throws(GameServiceError) in
            var periods: [WindowPeriod] = []
            let reply = try await inCurrentPeriods(until: end) { (now) async throws(GameServiceError) in
                periods = windows.map { $0.period(at: now) }
                let request = SubmitRequest(
                    id: id, name: name, score: score, periods: periods, answerLifetime: answerLifetime, keys: keys,
                    configuration: configuration)
                return try await scripts.run(
                    LeaderboardScripts.submit, keys: request.keys, arguments: request.arguments, until: end)
            }
            let submission = try submission(reply, id: id)
            guard let call else { return (submission, nil) }
            // An answer that was stored before expires earlier, and counts in the periods of its time.
            let remaining = reply.array?.count == 3 ? reply.array?.last?.integer : nil
            guard remaining ?? 0 >= 0,
                let periods = remaining == nil ? periods : self.periods(of: submission, among: periods)
            else { return (submission, nil) }
            let confirmed = ConfirmedSubmit(
                id: id, name: name, score: score, periods: periods, answerLifetime: answerLifetime,
                isInOrder: remaining == nil,
                repeatableUntil: call.began + (remaining.map { .milliseconds($0) } ?? answerLifetime))
            return (submission, .submit(confirmed))
        }
    }

    /// Returns what a submit was answered.
    private func submission(_ reply: RESPValue, id: String) throws(GameServiceError) -> LeaderboardSubmission {
        let parts = reply.array ?? []
        switch (parts.first?.string, parts.dropFirst().first?.string) {
        case ("ok", let answer?), ("again", let answer?):
            guard
                let submission = LeaderboardSubmission(id: id, answer: answer, windows: configuration.windows)
            else { throw GameServiceError(unexpected: reply) }
            return submission
        case ("range", let period?):
            throw GameServiceError(.outOfRange, "the sum of \"\(period)\" would leave the range of -2^53 to 2^53")
        case ("conflict", _):
            throw GameServiceError(.conflict, "the submit id was used for another name or score: use another id")
        case ("rules", let rules?):
            throw GameServiceError(
                .conflict,
                "its mode and direction are \"\(rules)\", but this node is configured with \"\(configuration.rules)\"")
        default: throw GameServiceError(unexpected: reply)
        }
    }

    /// Returns the periods in which a submit counts; `nil` for one that is not known.
    private func periods(of submission: LeaderboardSubmission, among known: [WindowPeriod]) -> [WindowPeriod]? {
        // The clock of this process may be behind the one by which the first of several calls was answered.
        let now = serverClock.now()
        let lifetime = configuration.submitIDLifetime.wholeMicroseconds
        var periods: [WindowPeriod] = []
        for (window, placement) in submission.placements {
            let own = known.first { $0.id == placement.period }
            guard let period = own ?? window.period(id: placement.period, near: now, within: lifetime) else {
                return nil
            }
            periods.append(period)
        }
        return periods.sorted { $0.id < $1.id }
    }

    /// Runs a call that changes the leaderboard, and again while its confirmation may be that of a server which was
    /// replaced meanwhile.
    ///
    /// - Parameter body: returns the result, and the change to remember.
    func confirming<Result>(
        until end: Duration,
        _ body: (LeaderboardMemory.Call?) async throws(GameServiceError) -> (Result, ConfirmedChange.Kind?)
    ) async throws(GameServiceError) -> Result {
        guard let memory else { return try await body(nil).0 }
        while true {
            let call = memory.begin()
            defer { memory.end() }
            let (result, change) = try await body(call)
            guard let change, !memory.confirm(change, of: call) else { return result }
            guard scripts.clock.now() < end else {
                throw GameServiceError(
                    .connectionLost, "connections changed for \(configuration.callTimeout)", mayHaveRun: true)
            }
        }
    }

    /// Runs a request with the current time by Redis's clock, and again when the time was wrong.
    func inCurrentPeriods(
        until end: Duration, _ request: (_ now: Int) async throws(GameServiceError) -> RESPValue
    ) async throws(GameServiceError) -> RESPValue {
        while true {
            let reply = try await request(serverClock.now())
            guard let parts = reply.array, parts.count == 2, parts[0].string == "window",
                let time = parts[1].string.flatMap({ Int($0) })
            else { return reply }
            serverClock.set(time)
            guard scripts.clock.now() < end else {
                throw GameServiceError(
                    .connectionLost, "no request arrived within its window for \(configuration.callTimeout)",
                    mayHaveRun: true)
            }
        }
    }
}

extension ServiceKeys {
    /// The keys of a window's period: ranks and stamps.
    func window(_ period: WindowPeriod) -> [String] { [key("ranks:\(period.id)"), key("stamps:\(period.id)")] }
}
