import CoordinationBase
public import Hiredis

/// Reads, each of one moment unless it says otherwise.
///
/// All of them read the current period of a window, or an earlier one for as long as
/// ``LeaderboardConfiguration/retention`` keeps it: `ago` is 1 for the previous day, week or month.
/// They take at most ``LeaderboardConfiguration/callTimeout``, and throw `.invalidArgument`,
/// `.cancelled`, `.connectionLost`, `.notConnected`, `.notPermitted`, `.wrongType`, `.stopped` and
/// `.serverError`.
extension Leaderboard {
    /// Returns the best entries.
    ///
    /// - Parameters:
    ///   - count: 1 to 1,000.
    ///   - window: the window.
    ///   - skipped: the number of entries to leave out at the top, 0 to 2^53.
    ///   - ago: 0 for the current period, 1 for the previous one, and so on; at most 10,000.
    public func top(
        _ count: Int, in window: LeaderboardWindow = .allTime, skipping skipped: Int = 0, ago: Int = 0
    ) async throws(GameServiceError) -> LeaderboardPage {
        try check(count: count)
        guard (0...Self.maxScore).contains(skipped) else {
            throw invalid("the number of entries to skip is \(skipped), expected 0 to 2^53")
        }
        return try await read(["top", .integer(skipped), .integer(count)], window, ago)
    }

    /// Returns a name's entry and those around it, as many on either side as possible.
    ///
    /// At either end of the ranking, the entries that are missing on one side are taken from the
    /// other. Without an entry of this name the page is empty.
    ///
    /// - Parameters:
    ///   - name: the name in the middle.
    ///   - count: the number of entries, including the name's own, 1 to 1,000.
    ///   - window: the window.
    ///   - ago: 0 for the current period, 1 for the previous one, and so on; at most 10,000.
    public func around(
        _ name: String, _ count: Int, in window: LeaderboardWindow = .allTime, ago: Int = 0
    ) async throws(GameServiceError) -> LeaderboardPage {
        try check(count: count)
        try validate(name)
        return try await read(["around", .string(name), .integer(count)], window, ago)
    }

    /// Returns a name's entry, or `nil` if there is none.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - window: the window.
    ///   - ago: 0 for the current period, 1 for the previous one, and so on; at most 10,000.
    public func entry(
        of name: String, in window: LeaderboardWindow = .allTime, ago: Int = 0
    ) async throws(GameServiceError) -> LeaderboardEntry? {
        try await entries(of: [name], in: window, ago: ago).entries.first
    }

    /// Returns the entries of some names, for example of friends, best first. Names without an entry
    /// are left out.
    ///
    /// Each 200 names are read in a step of their own, between which the server serves others: ranks
    /// of more names are of several moments.
    ///
    /// - Parameters:
    ///   - names: at most 1,000 names. A name that occurs twice is returned once.
    ///   - window: the window.
    ///   - ago: 0 for the current period, 1 for the previous one, and so on; at most 10,000.
    public func entries(
        of names: [String], in window: LeaderboardWindow = .allTime, ago: Int = 0
    ) async throws(GameServiceError) -> LeaderboardPage {
        guard names.count <= Self.maxPageSize else {
            throw invalid("there are \(names.count) names, expected at most \(Self.maxPageSize)")
        }
        for name in names { try validate(name) }
        var seen: Set<ByteName> = []
        let unique = names.filter { seen.insert(ByteName($0)).inserted }
        var page = try await read(["of"] + unique.prefix(Self.namesInOneRead).map { .string($0) }, window, ago)
        for start in stride(from: Self.namesInOneRead, to: unique.count, by: Self.namesInOneRead) {
            let next = unique[start..<min(start + Self.namesInOneRead, unique.count)]
            let further = try await read(["of"] + next.map { .string($0) }, window, ago)
            // A new period has begun in between.
            guard further.period == page.period else { return try await entries(of: names, in: window, ago: ago) }
            page.entries += further.entries
            page.entryCount = further.entryCount
        }
        page.entries.sort { $0.rank < $1.rank }
        return page
    }

    /// The number of names that one script reads.
    private static var namesInOneRead: Int { 200 }

    // MARK: Remove

    /// Removes a name from all current rankings, and from those of earlier periods that are still
    /// kept.
    ///
    /// Removing twice has no second effect. A submit that is repeated under its id afterwards does not
    /// bring the entry back, unless a failover has lost the submit. A removal that a failover has lost
    /// is repeated, and leaves alone what anybody has submitted after it.
    ///
    /// - Returns: the number of rankings that had an entry of this name.
    @discardableResult
    public func remove(_ name: String) async throws(GameServiceError) -> Int {
        try validate(name)
        do throws(GameServiceError) {
            let end = scripts.clock.now() + scripts.callTimeout
            return try await confirming(until: end) { (_) async throws(GameServiceError) in
                var entries: [(period: WindowPeriod, stamp: String)] = []
                let periods = try await keptPeriods()
                for start in stride(from: 0, to: periods.count, by: 64) {
                    let step = periods[start..<min(start + 64, periods.count)]
                    let reply = try await scripts.run(
                        LeaderboardScripts.remove, keys: step.flatMap { self.keys.window($0) },
                        arguments: [.string(name)], until: end)
                    guard let stamps = reply.array?.compactMap(\.string), stamps.count == step.count else {
                        throw GameServiceError(unexpected: reply)
                    }
                    entries += zip(step, stamps).filter { !$1.isEmpty }.map { ($0, $1) }
                }
                return (entries.count, .removal(ConfirmedRemoval(name: name, entries: entries)))
            }
        } catch { throw error.prefixed("cannot remove an entry of leaderboard \"\(self.name)\"") }
    }

    /// Deletes all rankings of the windows of this handle, and forgets mode and order.
    ///
    /// The answers to submits with an id remain until they expire. A deletion that a failover loses is
    /// not repeated, and neither are this handle's submits from before it.
    public func delete() async throws(GameServiceError) {
        do throws(GameServiceError) {
            let periods = try await keptPeriods()
            let keys = [self.keys.key("meta")] + periods.flatMap { self.keys.window($0) }
            do throws(RedisError) {
                let command = RedisCommand(["UNLINK"] + keys.map { .string($0) })
                _ = try await redis.send(command, timeout: scripts.callTimeout)
            } catch { throw GameServiceError(error) }
            memory?.forgetAll()
        } catch { throw error.prefixed("cannot delete leaderboard \"\(name)\"") }
    }

    /// The periods of all windows that Redis may still keep.
    private func keptPeriods() async throws(GameServiceError) -> [WindowPeriod] {
        // A read corrects the estimate of the server's clock.
        if let window = configuration.windows.first(where: { $0 != .allTime }) {
            _ = try await read(["top", 0, 1], window, 0)
        }
        let now = serverClock.now()
        var periods: [WindowPeriod] = []
        for window in configuration.windows {
            var ago = 0
            while true {
                let period = window.period(at: now, ago: ago)
                periods.append(period)
                guard let end = period.end, end + configuration.retention.wholeMicroseconds > now else { break }
                ago += 1
            }
            // A submit that began just now may be stored in the next period.
            if window != .allTime { periods.append(window.period(at: now, ago: -1)) }
        }
        return periods
    }

    // MARK: Existing leaderboards

    /// Returns the mode and the order of an existing leaderboard, for tools that do not know them;
    /// `nil` if nothing was ever submitted.
    ///
    /// - Throws: `.invalidArgument`, and the failures of a command.
    public static func rules(
        of name: String, redis: any Redis, namespace: String = "default"
    ) async throws(GameServiceError) -> (mode: LeaderboardConfiguration.Mode, order: LeaderboardConfiguration.Order)? {
        let meta = try ServiceKeys(namespace: namespace, kind: "board", name: name).key("meta")
        let reply: RESPValue
        do throws(RedisError) { reply = try await redis.send("HGET", .string(meta), "rules") } catch {
            throw GameServiceError(error).prefixed("cannot read leaderboard \"\(name)\"")
        }
        if reply.isNull { return nil }
        let words = reply.string?.split(separator: " ").map(String.init) ?? []
        guard words.count == 2, let mode = LeaderboardConfiguration.Mode(rawValue: words[0]) else {
            throw GameServiceError(unexpected: reply)
        }
        return (mode, words[1] == "1" ? .lowerIsBetter : .higherIsBetter)
    }

    // MARK: The script

    private func read(
        _ question: [RedisArgument], _ window: LeaderboardWindow, _ ago: Int
    ) async throws(GameServiceError) -> LeaderboardPage {
        guard configuration.windows.contains(window) else {
            throw invalid("it is not configured with the window \(window)")
        }
        guard (0...10_000).contains(ago) else { throw invalid("ago is \(ago), expected 0 to 10,000") }
        instruments.read()
        do throws(GameServiceError) {
            var period = window.period(at: serverClock.now(), ago: ago)
            let end = scripts.clock.now() + scripts.callTimeout
            let reply = try await inCurrentPeriods(until: end) { (now) async throws(GameServiceError) in
                let current = window.period(at: now)
                period = window.period(at: now, ago: ago)
                let check: [RedisArgument] = [.integer(current.start), .integer(current.end ?? 0)]
                return try await scripts.run(
                    LeaderboardScripts.read, keys: keys.window(period), arguments: check + question, until: end)
            }
            return try page(reply, period)
        } catch { throw error.prefixed("cannot read leaderboard \"\(name)\"") }
    }

    private func page(_ reply: RESPValue, _ period: WindowPeriod) throws(GameServiceError) -> LeaderboardPage {
        guard let parts = reply.array, parts.first?.string == "ok", parts.count >= 2, parts.count % 3 == 2,
            let count = parts[1].integer
        else { throw GameServiceError(unexpected: reply) }
        var entries: [LeaderboardEntry] = []
        for at in stride(from: 2, to: parts.count, by: 3) {
            guard
                let entry = LeaderboardEntry(
                    rank: parts[at].integer, member: parts[at + 1].string, score: parts[at + 2].string,
                    direction: configuration.direction)
            else { throw GameServiceError(unexpected: reply) }
            entries.append(entry)
        }
        return LeaderboardPage(entries: entries, entryCount: count, period: period.id)
    }

    private func check(count: Int) throws(GameServiceError) {
        guard (1...Self.maxPageSize).contains(count) else {
            throw invalid("the number of entries is \(count), expected 1 to \(Self.maxPageSize)")
        }
    }

    private func validate(_ name: String) throws(GameServiceError) {
        do { try ServiceKeys.validate(name, "name", maxBytes: 512) } catch {
            throw error.prefixed("cannot read leaderboard \"\(self.name)\"")
        }
    }

    private func invalid(_ fault: String) -> GameServiceError {
        GameServiceError(.invalidArgument, fault).prefixed("cannot read leaderboard \"\(name)\"")
    }
}
