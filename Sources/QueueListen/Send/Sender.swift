import CoordinationBase
// Sends to the mailboxes of one partition, with retries and exactly one effect.
import Hiredis

/// Numbers this process's sends to one partition, and retries each until it is answered.
final class Sender: Sendable {
    private let redis: any Redis
    private let partition: Partition
    private let configuration: PostOfficeConfiguration
    private let clock: MonotonicClock
    /// Identifies this sender. The server keeps the answers to its numbered requests.
    private let name = randomID()
    private let places = Locked(RequestPlaces())
    private let confirmed = Locked(ConfirmedMessages())

    init(redis: any Redis, partition: Partition, configuration: PostOfficeConfiguration, clock: MonotonicClock) {
        self.redis = redis
        self.partition = partition
        self.configuration = configuration
        self.clock = clock
    }

    /// The mode of the script `send`.
    private enum Mode {
        case send
        /// Checks whether a part of a cross-partition send would be accepted.
        case probe
        /// Sends a part of a cross-partition send, regardless of limits, until this time of the
        /// server's clock in milliseconds since 1970.
        case part(until: Int)
    }

    /// The arguments of the script `send` except the messages.
    private struct ScriptRequest {
        var sender: String
        var number = 1
        /// The place of its answer.
        var place = 0
        var mode = Mode.send
        /// The time for which the server keeps the answer.
        var answerLifetime: Duration
        /// A hexadecimal number.
        var fingerprint: String
    }

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
            let scriptRequest = ScriptRequest(
                sender: "id:" + id, answerLifetime: configuration.sendIDLifetime, fingerprint: encodedSend.fingerprint)
            let firstIndices = try await deliver(encodedSend, scriptRequest, writes, until: end)
            return Receipt(id: id, request, firstIndices, durability)
        }
        let (number, place) = places.withLock { $0.take() }
        // Whether it succeeds or fails, it is not sent again after this call.
        defer { if let place { places.withLock { $0.release(place) } } }
        let ownID = "\(name)-\(number)"
        let scriptRequest = ScriptRequest(
            sender: place == nil ? ownID : name, number: number, place: place ?? 0,
            // The server may keep an answer for half of this time: the expiry is that of all places together.
            answerLifetime: configuration.ownIDLifetime * 2, fingerprint: "0")
        let firstIndices = try await deliver(request.encoded(id: ownID), scriptRequest, writes, until: end)
        return Receipt(id: ownID, request, firstIndices, durability)
    }

    // MARK: Parts of a cross-partition send

    /// Checks that a part would be accepted now.
    ///
    /// - Returns: the time by the partition's clock, in milliseconds since 1970.
    /// - Throws: `.mailboxFull`, `.conflict` and the codes of a failed request.
    func probe(
        _ part: EncodedSend, id: String, fingerprint: String, until end: Duration
    ) async throws(QueueListenError) -> Int {
        let request = ScriptRequest(
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
        part: EncodedSend, id: String, fingerprint: String, deadline: Int, answerLifetime: Duration,
        _ durability: Durability, until end: Duration
    ) async throws(QueueListenError) -> [Int] {
        let request = ScriptRequest(
            sender: "id:" + id, mode: .part(until: deadline), answerLifetime: answerLifetime, fingerprint: fingerprint)
        return try await deliver(part, request, DurableWrites(redis: redis, durability: durability), until: end)
    }

    /// Shortens the time for which the partition remembers a delivered part.
    func expireAnswer(id: String, after lifetime: Duration) async {
        _ = try? await redis.send(
            "PEXPIRE", .string(partition.keys.sent("id:" + id)), .integer(lifetime.wholeMilliseconds))
    }

    // MARK: The script

    private func deliver(
        _ encodedSend: EncodedSend, _ request: ScriptRequest, _ writes: DurableWrites, until end: Duration
    ) async throws(QueueListenError) -> [Int] {
        let outcome = try await exchange(encodedSend, request, writes, end)
        if let bytes = outcome.reply.bytes, let results = Self.results(bytes, of: encodedSend) {
            record(results, encodedSend, outcome.tags)
            return results.map(\.firstIndex)
        }
        // The answer of an earlier attempt. The tags are those of that attempt, so they are unknown.
        guard let parts = outcome.reply.array, parts.first?.string == "ok",
            let results = Self.results(parts.last?.bytes ?? [], of: encodedSend)
        else { throw refusal(outcome.reply, encodedSend, mayComeLate: outcome.mayComeLate) }
        return results.map(\.firstIndex)
    }

    /// The result of a send for each recipient.
    private typealias SendResult = (firstIndex: Int, epoch: UInt64)

    private static func results(_ bytes: [UInt8], of encodedSend: EncodedSend) -> [SendResult]? {
        var reader = ByteReader(bytes)
        var results: [SendResult] = []
        while let firstIndex = reader.number(), let epoch = reader.uint64() { results.append((firstIndex, epoch)) }
        return results.count == encodedSend.recipients.count ? results : nil
    }

    private func remaining(until end: Duration) -> Duration {
        max(.milliseconds(1), min(end - clock.now(), configuration.callTimeout / 2))
    }

    /// The reply to the last attempt of a request, and what is known of the attempts before.
    private struct Outcome {
        var reply: RESPValue
        /// The tags of the messages in this attempt.
        var tags: [UInt64]
        /// Whether an earlier attempt had no reply: it may still arrive, and take effect where this one was refused.
        var mayComeLate: Bool
    }

    /// Runs the script, with retries and after repairs, until there is a reply that says the outcome.
    private func exchange(
        _ encodedSend: EncodedSend, _ request: ScriptRequest, _ writes: DurableWrites, _ end: Duration
    ) async throws(QueueListenError) -> Outcome {
        let keys = encodedSend.keys(in: partition, sender: request.sender)
        let messages = encodedSend.arguments()
        var mayComeLate = false
        while true {
            let (reply, tags, known) = try await repeating(until: end, clock, throwing: QueueListenError.self) {
                let tags = encodedSend.newTags()
                let known = confirmed.withLock { $0.cursors(of: encodedSend.recipients) }
                let arguments = [.bytes(header(request, encodedSend, tags, known))] + messages
                do {
                    let reply = try await writes.run(
                        Scripts.send, keys: keys, arguments: arguments, timeout: remaining(until: end))
                    return (reply, tags, known)
                } catch {
                    mayComeLate = mayComeLate || QueueListenError(error).mayHaveRun
                    throw error
                }
            }
            let outcome = Outcome(reply: reply, tags: tags, mayComeLate: mayComeLate)
            switch reply.array?.first?.string {
            case "again" where clock.now() < end: break
            case "damaged" where clock.now() < end:
                guard let number = reply.array?.last?.integer, encodedSend.recipients.indices.contains(number - 1)
                else { return outcome }
                try await repair(
                    encodedSend.recipients[number - 1], known: known.isEmpty ? .none : known[number - 1], until: end)
            default: return outcome
            }
        }
    }

    /// The first argument of the script.
    ///
    /// - Parameter known: the last confirmed message in each recipient's mailbox, or nothing.
    private func header(
        _ request: ScriptRequest, _ encodedSend: EncodedSend, _ tags: [UInt64], _ known: [Cursor]
    ) -> [UInt8] {
        var header = PackedBytes()
        var deadline = 0
        switch request.mode {
        case .send: header.byte(0)
        case .probe: header.byte(1)
        case .part(let time):
            header.byte(2)
            deadline = time
        }
        header.uint16(partition.total)
        header.byte(encodedSend.hasCollapseKeys ? 1 : 0)
        header.uint16(encodedSend.contents.count)
        header.uint16(request.place)
        header.number(request.number)
        header.number(request.answerLifetime.wholeMilliseconds)
        header.uint64(UInt64(request.fingerprint, radix: 16) ?? 0)
        header.number(deadline)
        header.raw(partition.limits[MailboxLimits.sendPart])
        for tag in tags { header.uint64(tag) }
        for cursor in known { header.cursor(cursor) }
        return header.bytes
    }

    /// Repairs a mailbox that was tampered with, or whose end Redis has lost.
    private func repair(_ mailbox: String, known: Cursor, until end: Duration) async throws(QueueListenError) {
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
        case "again", "damaged":
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

    /// Remembers the last message in each recipient's mailbox.
    private func record(_ results: [SendResult], _ encodedSend: EncodedSend, _ tags: [UInt64]) {
        confirmed.withLock { confirmed in
            for (position, result) in results.enumerated() {
                let last = Cursor(
                    epoch: result.epoch, index: result.firstIndex + encodedSend.count(of: position) - 1,
                    tag: tags[encodedSend.last(of: position)])
                confirmed.record(last, in: encodedSend.recipients[position])
            }
        }
    }
}

extension QueueListenError {
    static var usedID: QueueListenError {
        QueueListenError(.conflict, "the send id was used for other messages or recipients: use another id")
    }
}

extension PostOfficeConfiguration {
    /// The time for which answers to sends without a caller's id are kept: longer than any such
    /// send is retried.
    var ownIDLifetime: Duration { max(.seconds(60), callTimeout * 4) }
}
