// Sends to the mailboxes of one partition, with retries and exactly one effect.
import CoordinationBase
import Hiredis

/// Numbers this process's sends to one partition, and retries each until it is answered.
final class Sender: Sendable {
    /// What the sender knows of its requests.
    struct State: Sendable {
        var places = RequestPlaces()
        var messages = ConfirmedMessages()
        var sends: ConfirmedSends
        /// Whether sends are being checked, and sent again where Redis has lost them.
        var isRepairing = false
        /// The attempts that wait for the end of the repair.
        var waiting: [AsyncStream<Never>.Continuation] = []
        /// The attempts under way, and the maximum that there has been.
        var attempts = 0
        var maxAttempts = 0
        /// How often there was a reason for a repair. A send that was confirmed meanwhile is checked too.
        var repairCount = 0
    }

    let redis: any Redis
    let partition: Partition
    let configuration: PostOfficeConfiguration
    let clock: MonotonicClock
    let instruments: MailInstruments
    /// Identifies this sender. The server keeps the answers to its numbered requests.
    let name = randomID()
    let state: Locked<State>
    /// The time for which Redis certainly keeps the answer to a request in a place.
    private let placedAnswerLifetime: Duration
    /// Ends the observation of the command connection.
    private let stopObserving = Locked<(@Sendable () -> Void)?>(nil)

    /// - Parameter connections: the Redis that says when a connection is new.
    init(
        redis: any Redis, connections: any EventLoopRedis, partition: Partition, configuration: PostOfficeConfiguration,
        clock: MonotonicClock, instruments: MailInstruments
    ) {
        self.redis = redis
        self.partition = partition
        self.configuration = configuration
        self.clock = clock
        self.instruments = instruments
        let placed = Self.placedRequest(of: name, configuration)
        placedAnswerLifetime = Self.answerLifetime(of: placed, configuration)
        let sends = ConfirmedSends(
            maxBytes: configuration.repairBytesOfPartition, maxAge: configuration.repairTime, placed: placed,
            answerLifetime: placedAnswerLifetime)
        state = Locked(State(sends: sends))
        let stop = connections.sendFirst(for: partition.keys.meta) { [weak self] _ in
            self?.repairLosses()
        }
        stopObserving.withLock { $0 = stop }
    }

    deinit { stopObserving.withLock { $0 }?() }

    /// Sends messages to mailboxes of this partition: to all or to none.
    ///
    /// - Parameter id: the caller's own id, or `nil`.
    /// - Throws: the codes of `PostOffice.send`.
    func send(
        _ request: SendRequest, id: String?, _ durability: Durability
    ) async throws(QueueListenError) -> Receipt {
        let writes = DurableWrites(redis: redis, durability: durability)
        do { try await writes.prepare() } catch { throw QueueListenError(error) }
        let end = clock.now() + configuration.callTimeout
        if let id {
            let encodedSend = request.encoded(id: id)
            let scriptRequest = SendScriptRequest(
                sender: "id:" + id, answerLifetime: configuration.sendIDLifetime, fingerprint: encodedSend.fingerprint)
            let firstIndices = try await deliver(encodedSend, scriptRequest, writes, until: end)
            return Receipt(id: id, request, firstIndices, durability)
        }
        let (number, place) = state.withLock { $0.places.take() }
        // Whether it succeeds or fails, no later attempt of this call uses the place.
        defer { if let place { state.withLock { $0.places.release(place) } } }
        let ownID = "\(name)-\(number)"
        var scriptRequest = Self.placedRequest(of: place == nil ? ownID : name, configuration)
        (scriptRequest.number, scriptRequest.place) = (number, place)
        let firstIndices = try await deliver(request.encoded(id: ownID), scriptRequest, writes, until: end)
        return Receipt(id: ownID, request, firstIndices, durability)
    }

    /// A request without an id of the caller's, but for its number and place.
    private static func placedRequest(
        of sender: String, _ configuration: PostOfficeConfiguration
    ) -> SendScriptRequest {
        // The server may keep an answer for half of this time: the expiry is that of all places together.
        SendScriptRequest(sender: sender, answerLifetime: configuration.ownIDLifetime * 2, fingerprint: "0")
    }

    // MARK: Parts of a cross-partition send

    /// Checks that a part would be accepted now.
    ///
    /// - Returns: the time by the partition's clock, in milliseconds since 1970.
    /// - Throws: `.mailboxFull`, `.conflict` and the codes of a failed request.
    func probe(
        _ part: EncodedSend, id: String, fingerprint: String, until end: Duration
    ) async throws(QueueListenError) -> Int {
        let request = SendScriptRequest(
            sender: "id:" + id, mode: .probe, answerLifetime: .zero, fingerprint: fingerprint)
        let outcome = try await exchange(part, request, DurableWrites(redis: redis, durability: .memory), end)
        // No attempt has changed anything.
        return try time(outcome.reply, part)
    }

    /// Returns the time by the partition's clock, in milliseconds since 1970.
    func serverTime(until end: Duration) async throws(QueueListenError) -> Int {
        let reply = try await repeating(until: end, clock, throwing: QueueListenError.self) {
            try await redis.script(
                Scripts.time, keys: [partition.keys.meta], arguments: [], timeout: remaining(until: end))
        }
        return try time(reply, EncodedSend(contents: [], recipients: []))
    }

    private func time(_ reply: RESPValue, _ part: EncodedSend) throws(QueueListenError) -> Int {
        guard let parts = reply.array, parts.first?.string == "ok", let time = parts.last?.integer else {
            throw refusal(reply, part, mayComeLate: false)
        }
        return time
    }

    /// Delivers a part exactly once, regardless of the mailboxes' limits.
    ///
    /// - Parameters:
    ///   - deadline: the time by the partition's clock, in milliseconds since 1970, after which the
    ///     part is refused.
    ///   - answerLifetime: how long the partition remembers that the part was delivered.
    /// - Returns: the index of each recipient's first message.
    func deliver(
        part: EncodedSend, sender: String, fingerprint: String, deadline: Int, answerLifetime: Duration,
        _ durability: Durability, until end: Duration
    ) async throws(QueueListenError) -> [Int] {
        let request = SendScriptRequest(
            sender: sender, mode: .part(until: deadline), answerLifetime: answerLifetime, fingerprint: fingerprint)
        return try await deliver(part, request, DurableWrites(redis: redis, durability: durability), until: end)
    }

    /// Shortens the time for which the partition remembers a delivered part.
    func expireAnswer(of sender: String, after lifetime: Duration) async {
        _ = try? await redis.send(
            "PEXPIRE", .string(partition.keys.sent(sender)), .integer(lifetime.wholeMilliseconds))
    }

    // MARK: The script

    private func deliver(
        _ encodedSend: EncodedSend, _ request: SendScriptRequest, _ writes: DurableWrites, until end: Duration
    ) async throws(QueueListenError) -> [Int] {
        let outcome = try await exchange(encodedSend, request, writes, end)
        if let bytes = outcome.reply.bytes, let results = Self.results(bytes, of: encodedSend) {
            record(results, encodedSend, request, outcome.attempt, outcome.attempt.tags, writes)
            return results.map(\.firstIndex)
        }
        // The answer of an earlier attempt. The tags are those of that attempt, so they are unknown.
        guard let parts = outcome.reply.array, parts.first?.string == "ok",
            let results = Self.results(parts.last?.bytes ?? [], of: encodedSend)
        else { throw refusal(outcome.reply, encodedSend, mayComeLate: outcome.mayComeLate) }
        record(results, encodedSend, request, outcome.attempt, nil, writes)
        return results.map(\.firstIndex)
    }

    static func results(_ bytes: [UInt8], of encodedSend: EncodedSend) -> [ConfirmedSend.Result]? {
        var reader = ByteReader(bytes)
        var results: [ConfirmedSend.Result] = []
        while let firstIndex = reader.number(), let epoch = reader.uint64() { results.append((firstIndex, epoch)) }
        return results.count == encodedSend.recipients.count ? results : nil
    }

    private func remaining(until end: Duration) -> Duration {
        max(.milliseconds(1), min(end - clock.now(), configuration.callTimeout / 2))
    }

    /// What one attempt of a request is based on.
    private struct Attempt {
        /// The tags of the messages.
        var tags: [UInt64]
        /// The number of the last confirmed request in the same place; 0 for none.
        var earlier: Int
        /// The last confirmed message in each recipient's mailbox, or nothing.
        var known: [Cursor]
        /// The number of reasons for a repair before it.
        var repairCount: Int
        var began: Duration
    }

    /// Begins an attempt, when sends that Redis has lost have been sent again: their order must not change.
    private func attempt(
        _ encodedSend: EncodedSend, _ request: SendScriptRequest, until end: Duration
    ) async throws(QueueListenError) -> Attempt {
        while true {
            let (tags, now) = (encodedSend.newTags(), clock.now())
            let attempt = state.withLock { state -> Attempt? in
                guard !state.isRepairing else { return nil }
                state.attempts += 1
                state.maxAttempts = max(state.attempts, state.maxAttempts)
                return Attempt(
                    tags: tags, earlier: request.place.map { state.places.confirmed(in: $0, at: now) } ?? 0,
                    known: state.messages.cursors(of: encodedSend.recipients), repairCount: state.repairCount,
                    began: now)
            }
            if let attempt { return attempt }
            guard now < end, !Task.isCancelled else {
                throw QueueListenError(
                    Task.isCancelled ? .cancelled : .notConnected,
                    "earlier messages, which Redis may have lost, have to be sent again first")
            }
            await untilRepaired(before: end)
        }
    }

    /// The reply to the last attempt of a request, and what is known of the attempts before.
    private struct Outcome {
        var reply: RESPValue
        var attempt: Attempt
        /// Whether an earlier attempt had no reply: it may still arrive, and take effect where this one was refused.
        var mayComeLate: Bool
    }

    /// Runs the script, with retries and after repairs, until there is a reply that says the outcome.
    private func exchange(
        _ encodedSend: EncodedSend, _ request: SendScriptRequest, _ writes: DurableWrites, _ end: Duration
    ) async throws(QueueListenError) -> Outcome {
        let keys = encodedSend.keys(in: partition, sender: request.sender)
        let messages = encodedSend.arguments()
        var mayComeLate = false
        /// The number of reasons for a repair with the one after which a mailbox must have what can be sent again.
        var repairedFrom = Int.max
        while true {
            let outcome = try await repeating(until: end, clock, throwing: QueueListenError.self) {
                let attempt = try await attempt(encodedSend, request, until: end)
                defer { state.withLock { $0.attempts -= 1 } }
                let header = request.header(
                    encodedSend, in: partition, after: attempt.earlier, attempt.tags, attempt.known)
                do {
                    let reply = try await writes.run(
                        Scripts.send, keys: keys, arguments: [.bytes(header)] + messages,
                        timeout: remaining(until: end))
                    return Outcome(reply: reply, attempt: attempt, mayComeLate: mayComeLate)
                } catch {
                    mayComeLate = mayComeLate || QueueListenError(error).mayHaveRun
                    throw error
                }
            }
            switch outcome.reply.array?.first?.string {
            case "again" where clock.now() < end: break
            case "behind" where clock.now() < end: repairLosses(since: outcome.attempt.repairCount)
            case "damaged" where clock.now() < end:
                guard let number = outcome.reply.array?.last?.integer,
                    encodedSend.recipients.indices.contains(number - 1)
                else { return outcome }
                if outcome.attempt.repairCount < repairedFrom,
                    let count = repairLosses(since: outcome.attempt.repairCount)
                {
                    repairedFrom = count
                    continue
                }
                let known = outcome.attempt.known
                try await reportLoss(
                    in: encodedSend.recipients[number - 1], known: known.isEmpty ? .none : known[number - 1], until: end
                )
            default: return outcome
            }
        }
    }

    /// Repairs a mailbox that was tampered with, or that lacks a confirmed message which this sender cannot send again.
    func reportLoss(in mailbox: String, known: Cursor, until end: Duration) async throws(QueueListenError) {
        var position = PackedBytes()
        if known != .none { position.cursor(known) }
        let arguments: [RedisArgument] = [
            .bytes(partition.target.bytes), .bytes(position.bytes),
        ]
        let reply = try await repeating(until: end, clock, throwing: QueueListenError.self) {
            try await redis.script(
                Scripts.repair, keys: partition.keys.scriptKeys(mailbox), arguments: arguments,
                timeout: remaining(until: end))
        }
        guard reply.array?.first?.string == "ok" else {
            throw QueueListenError(refusal: reply, partitions: partition.total)
        }
        state.withLock { state in if state.messages.cursors(of: [mailbox]) == [known] { state.messages.forget(mailbox) }
        }
    }

    /// - Parameter mayComeLate: whether an earlier attempt of the request may still arrive.
    private func refusal(_ reply: RESPValue, _ encodedSend: EncodedSend, mayComeLate: Bool) -> QueueListenError {
        let parts = reply.array ?? []
        switch parts.first?.string {
        case "full":
            guard let number = parts.last?.integer, encodedSend.recipients.indices.contains(number - 1) else { break }
            let effect =
                mayComeLate
                ? "nothing was sent so far, but an attempt on a connection that broke may still arrive when there is room"
                : "nothing was sent"
            return QueueListenError(
                .mailboxFull,
                "the mailbox \"\(encodedSend.recipients[number - 1])\" is full: \(effect); "
                    + "try again when its messages are acknowledged, or raise its limits", mayHaveRun: mayComeLate)
        case "conflict": return .usedID
        case "stale", "late":
            return QueueListenError(
                .connectionLost, "the request reached Redis too late and was refused", mayHaveRun: true)
        case "again", "damaged", "behind":
            return QueueListenError(
                .connectionLost,
                "the mailbox could not be prepared for the messages within \(configuration.callTimeout)",
                mayHaveRun: mayComeLate)
        default: break
        }
        var error = QueueListenError(refusal: reply, partitions: partition.total)
        error.mayHaveRun = error.mayHaveRun || mayComeLate
        return error
    }

    /// Remembers a confirmed send.
    ///
    /// - Parameter tags: of its messages, if they are known.
    private func record(
        _ results: [ConfirmedSend.Result], _ encodedSend: EncodedSend, _ request: SendScriptRequest,
        _ attempt: Attempt, _ tags: [UInt64]?, _ writes: DurableWrites
    ) {
        let send = ConfirmedSend(
            encodedSend: encodedSend, request: request, isInOrder: writes.durability == .memory, results: results,
            sentAt: attempt.began, confirmedAt: clock.now(),
            repeatableUntil: attempt.began + answerLifetime(of: request))
        let isOfEarlierConnection = state.withLock { state in
            if let tags { state.messages.record(send, tags) }
            state.sends.append(send)
            if let place = request.place {
                state.places.confirm(request.number, in: place, until: send.repeatableUntil)
            }
            return state.repairCount != attempt.repairCount
        }
        if isOfEarlierConnection { repairLosses() }
    }

    /// The time for which Redis certainly keeps the answer to a request.
    func answerLifetime(of request: SendScriptRequest) -> Duration {
        request.place != nil ? placedAnswerLifetime : Self.answerLifetime(of: request, configuration)
    }

    private static func answerLifetime(
        of request: SendScriptRequest, _ configuration: PostOfficeConfiguration
    ) -> Duration {
        let lifetime = min(request.answerLifetime / 2, configuration.ownIDLifetime)
        // The answers to the parts of a finished send are kept as long as the send's.
        return if case .part = request.mode { min(lifetime, configuration.sendIDLifetime / 2) } else { lifetime }
    }
}

extension QueueListenError {
    static var usedID: QueueListenError {
        QueueListenError(.conflict, "the send id was used for other messages or recipients: use another id")
    }
}

extension PostOfficeConfiguration {
    /// The time for which answers to sends without a caller's id are kept: longer than any such send is retried, and than
    /// a failover takes, after which it may be sent again.
    var ownIDLifetime: Duration { max(.seconds(300), callTimeout * 4) }

    /// The part of ``repairBytes`` that each partition has. The largest send fits.
    var repairBytesOfPartition: Int {
        max(repairBytes / partitions, min(repairBytes, SendRequest.maxBytes * 2))
    }

    /// The time for which Redis keeps the record of a recorded send that was finished by another process than its sender.
    var recordedSendLifetime: Duration { max(sendIDLifetime, ownIDLifetime) }
}
