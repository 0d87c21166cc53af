// The sends of one partition that are due later: recorded, cancelled, listed and taken when they are due.
import CoordinationBase
import Hiredis

/// The scripts of later.lua, for the sends whose home is one partition.
final class LaterBook: Sendable {
    typealias Confirmations = ConfirmationMemory<ConfirmedSchedules>

    let home: Partition
    private let redis: any Redis
    private let connections: any EventLoopRedis
    private let configuration: PostOfficeConfiguration
    private let clock: MonotonicClock
    private let instruments: MailInstruments
    private let confirmations: Confirmations

    init(
        home: Partition, redis: any Redis, connections: any EventLoopRedis, configuration: PostOfficeConfiguration,
        clock: MonotonicClock, instruments: MailInstruments
    ) {
        (self.home, self.redis, self.connections) = (home, redis, connections)
        (self.configuration, self.clock, self.instruments) = (configuration, clock, instruments)
        confirmations = Confirmations(
            ConfirmedSchedules(maxAge: configuration.repairTime, maxBytes: configuration.repairBytesOfPartition),
            redis: connections, key: home.keys.meta, clock: clock)
    }

    // MARK: Schedule and cancel

    /// When a send is due, in milliseconds since 1970, and how long it is until then.
    struct Due: Sendable {
        var time: Int
        var wait: Duration

        /// - Parameter now: in microseconds since 1970.
        init(_ time: Int, now: Int) {
            self.time = time
            wait = max(.zero, .microseconds(time * 1000 - now))
        }
    }

    /// Records a send.
    func schedule(
        _ encodedSend: EncodedSend, _ time: SendTime, id: String, _ durability: Durability
    ) async throws(QueueListenError) -> Due {
        let writes = DurableWrites(redis: redis, durability: durability, subject: "the send is scheduled")
        do { try await writes.prepare() } catch { throw QueueListenError(error) }
        var rule = ""
        if case .recurring(let recurring) = time { rule = recurring.text }
        let schedule = ConfirmedSchedule(
            id: id, call: .random(in: 1 ... .max), encoded: encodedSend.encoded, fingerprint: encodedSend.fingerprint,
            rule: rule, isInOrder: durability == .memory)
        return try await confirming { () async throws(QueueListenError) in
            let end = clock.now() + configuration.callTimeout
            // The first time of a recurring send depends on the server's clock, which the first reply says.
            var now = 0
            while true {
                let at = try Self.first(time, after: now)
                let reply = try await repeating(until: end, clock, throwing: QueueListenError.self) {
                    try await writes.run(
                        Scripts.schedule, keys: keys(of: id), arguments: arguments(of: schedule, at),
                        timeout: remaining(until: end))
                }
                guard let parts = reply.array else { throw refusal(reply) }
                if parts.count == 2, parts[0].string == "over", let time = parts[1].integer, clock.now() < end {
                    now = time
                    continue
                }
                guard parts.count == 5, parts[0].string == "ok", let time = parts[1].integer,
                    let now = parts[2].integer,
                    let version = parts[3].integer
                else { throw refusal(reply) }
                var confirmed = schedule
                (confirmed.time, confirmed.version) = (time, version)
                return (Due(time, now: now), .scheduled(confirmed))
            }
        }
    }

    /// When a send is due for the first time.
    ///
    /// - Parameter now: in microseconds since 1970.
    private static func first(_ time: SendTime, after now: Int) throws(QueueListenError) -> SendTime {
        guard case .recurring(let rule) = time else { return time }
        if now == 0 { return .at(0) }
        guard let next = rule.recurrence.next(after: now / 1000) else {
            throw QueueListenError(.invalidArgument, "the send recurs no more: \(rule.recurrence)")
        }
        return .at(next)
    }

    /// Cancels a send.
    func cancel(_ id: String) async throws(QueueListenError) -> Bool {
        try await confirming { () async throws(QueueListenError) in
            let reply = try await run(Scripts.cancel, keys: cancelKeys(of: id), cancelArguments(id, calls: nil))
            guard let parts = reply.array, let isCancelled = parts.first?.integer else { throw refusal(reply) }
            guard isCancelled == 1, parts.count == 3, let calls = parts[1].bytes else { return (false, nil) }
            return (true, .cancelled(id, calls: calls))
        }
    }

    /// Runs a call whose answer is to be remembered, and again while the answer may be that of a server which was replaced
    /// meanwhile.
    private func confirming<Result>(
        _ body: () async throws(QueueListenError) -> (Result, ConfirmedSchedules.Change?)
    ) async throws(QueueListenError) -> Result {
        let end = clock.now() + configuration.callTimeout
        while true {
            let call = confirmations.begin { [weak self] in await self?.repair(on: $0) }
            defer { confirmations.end() }
            let (result, change) = try await body()
            if confirmations.confirm(call, { log, now in if let change { log.append(change, at: now) } }) {
                return result
            }
            guard clock.now() < end else {
                throw QueueListenError(
                    .connectionLost, "connections changed for \(configuration.callTimeout)", mayHaveRun: true)
            }
        }
    }

    // MARK: Due

    /// What is due, and what follows.
    struct Page: Sendable {
        /// In microseconds since 1970.
        var now: Int
        /// When the next send is due or may be taken; `nil` if there is none.
        var next: Due?
        var ids: [String]
    }

    /// Takes sends that are due. Those that are not finished can be taken again after a while.
    func takeDue(limit: Int) async throws(QueueListenError) -> Page {
        let reply = try await run(
            Scripts.takeDue, keys: [home.keys.laterSends],
            [.integer(configuration.takeOverAfter.wholeMilliseconds), .integer(limit)])
        guard let parts = reply.array, parts.count >= 2, let now = parts[0].integer else {
            throw QueueListenError(unexpected: reply)
        }
        return Page(
            now: now, next: parts[1].integer.map { Due($0, now: now) }, ids: parts.dropFirst(2).compactMap(\.string))
    }

    /// Returns the sends that are due next.
    func list(_ limit: Int) async throws(QueueListenError) -> [ScheduledSend] {
        let end = clock.now() + configuration.callTimeout
        return try await repeating(until: end, clock, throwing: QueueListenError.self) {
            let reply = try await redis.send(
                "ZRANGEBYSCORE", .string(home.keys.laterSends), "-inf", "+inf", "limit", "0", .integer(limit))
            let ids = reply.array?.compactMap(\.string) ?? []
            let commands = ids.map { id -> RedisCommand in ["HMGET", .string(send(id).recordKey), "d", "r"] }
            let records = try await redis.pipeline(commands, timeout: remaining(until: end))
            return zip(ids, records).compactMap { id, record in
                // One that is finished meanwhile may have no record any more.
                guard let fields = record.array, fields.count == 2, let time = fields[0].integer else { return nil }
                let rule = fields[1].string.flatMap { try? RecurrenceRule(text: $0) }
                return ScheduledSend(id: id, milliseconds: time, rule?.recurrence)
            }
        }
    }

    // MARK: After a failover

    /// Schedules and cancels again what Redis has lost, while no other caller has the connection.
    private func repair(on connection: NewConnection) async {
        let callTimeout = min(configuration.callTimeout, .maxWait)
        let scripts = ConnectionScripts(
            redis: connections, connection: connection, clock: clock, timeout: callTimeout / 2,
            end: clock.now() + callTimeout)
        var repaired = 0
        await confirmations.compare { log, needed in
            // Each script says whether it was needed, and does nothing otherwise.
            let missing = await MissingConfirmations(among: Array(log.entries), needed: needed) { part in
                var answers: [Bool] = []
                for entry in part {
                    guard let isMissing = await repeated(entry.change, scripts) else { return nil }
                    answers.append(isMissing)
                }
                return answers
            }
            repaired = missing?.positions.count ?? 0
            return missing.map { $0.positions.isEmpty } ?? false
        }
        if repaired > 0 { instruments.scheduledAgain(repaired) }
    }

    /// - Returns: whether the server lacked the change; `nil` if it does not answer.
    private func repeated(_ change: ConfirmedSchedules.Change, _ scripts: ConnectionScripts) async -> Bool? {
        let answer =
            switch change {
            case .scheduled(let schedule):
                await scripts.run(
                    Scripts.schedule, keys: keys(of: schedule.id),
                    arguments: arguments(of: schedule, .at(schedule.time)))
            case .cancelled(let id, let calls):
                await scripts.run(
                    Scripts.cancel, keys: cancelKeys(of: id), arguments: cancelArguments(id, calls: calls))
            }
        switch answer {
        case .reply(let reply): return reply.array?.last?.integer == 1
        case .refused: return false
        case .interrupted: return nil
        }
    }

    // MARK: Scripts

    private func send(_ id: String) -> RecordedSend { RecordedSend(id: id, kind: .later, home: home) }

    private func keys(of id: String) -> [String] {
        [home.keys.meta, send(id).recordKey, send(id).indexKey]
    }

    private func arguments(of schedule: ConfirmedSchedule, _ time: SendTime) -> [RedisArgument] {
        var call = PackedBytes()
        call.uint64(schedule.call)
        let (at, after): (RedisArgument, RedisArgument) =
            switch time {
            case .at(let milliseconds): (.integer(milliseconds), "")
            case .after(let delay): ("", .string("\(Double(delay.nanoseconds) / 1e6)"))
            case .recurring: preconditionFailure("see first(_:after:)")
            }
        let version: RedisArgument = schedule.version == 0 || schedule.rule.isEmpty ? "" : .integer(schedule.version)
        return [
            .integer(home.total), .string(schedule.id), .string(schedule.fingerprint), .bytes(schedule.encoded),
            .bytes(call.bytes), at, after, .integer(RecordedSends.recordLifetime.wholeMilliseconds),
            .integer(configuration.maxScheduledSends), .string(schedule.rule), version,
        ]
    }

    private func cancelKeys(of id: String) -> [String] { [send(id).recordKey, send(id).indexKey] }

    private func cancelArguments(_ id: String, calls: [UInt8]?) -> [RedisArgument] {
        [.string(id), .integer(configuration.recordedSendLifetime.wholeMilliseconds), .bytes(calls ?? [])]
    }

    private func run(
        _ script: RedisScript, keys: [String], _ arguments: [RedisArgument]
    ) async throws(QueueListenError) -> RESPValue {
        let end = clock.now() + configuration.callTimeout
        return try await repeating(until: end, clock, throwing: QueueListenError.self) {
            try await redis.script(script, keys: keys, arguments: arguments, timeout: remaining(until: end))
        }
    }

    private func remaining(until end: Duration) -> Duration {
        max(.milliseconds(1), min(end - clock.now(), configuration.callTimeout / 2))
    }

    private func refusal(_ reply: RESPValue) -> QueueListenError {
        switch reply.array?.first?.string {
        case "conflict": .usedID
        case "full":
            QueueListenError(
                .tooManyScheduled,
                "\(configuration.maxScheduledSends) scheduled sends wait in this partition already: nothing was scheduled; "
                    + "cancel some, or raise PostOfficeConfiguration.maxScheduledSends")
        default: QueueListenError(refusal: reply, partitions: home.total)
        }
    }
}
