// Sends that are recorded in Redis before they are delivered, so that any process can finish them.
//
// Such a send is recorded in one partition, its home. From then on it is committed. The partition of each recipient delivers
// its part, under the send's id. Then the home records that all parts are delivered. Each step has one effect, however often
// and by however many processes it is executed.
//
// A step that arrives very late must not have a second effect. A partition remembers its part for at least a minute after the
// whole send is finished, and until the home partition has confirmed some rounds later that its record still says so: a home
// that loses the last step in a failover makes others deliver again. It delivers the part only within half a minute of the
// time that it reported. A process that is about to deliver a part requests this time first, and only then checks that the
// send is still unfinished. All times that are compared therefore come from the same clock.
import CoordinationBase
import DequeModule
import Hiredis

/// The identity of a recorded send, and where it is recorded.
struct RecordedSend: Sendable {
    enum Kind: Sendable {
        /// It is delivered at once, to recipients in several partitions.
        case acrossPartitions
        /// It is delivered when it is due.
        case later
    }

    let id: String
    let kind: Kind
    /// The partition that records it.
    let home: Partition

    /// In whose name a partition keeps the answer to its part.
    var sender: String { kind == .later ? "at:" + id : "id:" + id }

    var recordKey: String { kind == .later ? home.keys.laterRecord(id) : home.keys.sendRecord(id) }

    /// The key of the ids of those that are not finished.
    var indexKey: String { kind == .later ? home.keys.laterSends : home.keys.unfinishedSends }
}

/// A send whose parts the partitions remember longer than necessary.
private struct FinishedSend: Sendable {
    var send: RecordedSend
    var senders: [Sender]
    /// The time for which they must remember them.
    var lifetime: Duration
    var forgetAt: Duration

    func again(at time: Duration) -> FinishedSend {
        var again = self
        again.forgetAt = time
        return again
    }
}

/// Delivers and finishes recorded sends.
final class RecordedSends: Sendable {
    private let redis: any Redis
    private let keyspace: Namespace
    private let partitions: [Partition]
    private let senders: [Sender]
    private let configuration: PostOfficeConfiguration
    private let clock: MonotonicClock
    private let instruments: MailInstruments
    /// The sends that this process has finished, oldest first, whose parts are to be forgotten.
    private let finished = Locked(Deque<FinishedSend>())

    /// The time for which a partition accepts a part after the time that it reported, in
    /// milliseconds.
    static let deliveryWindow = 30_000
    /// The time for which an unfinished send is kept before it is given up.
    static let recordLifetime = Duration.seconds(29 * 86400)
    /// The time for which the partitions remember the parts of an unfinished send: longer than the
    /// send itself is kept.
    private static let partLifetime = Duration.seconds(30 * 86400)
    /// The time after which the parts of a finished send are forgotten, in rounds of
    /// ``CrossPartitionSender/run()``.
    private static let roundsBeforeForgetting = 16
    /// The maximum number of finished sends whose parts are to be forgotten. The parts of others expire by themselves.
    private static let maxFinishedSends = 100_000

    init(
        redis: any Redis, keyspace: Namespace, partitions: [Partition], senders: [Sender],
        configuration: PostOfficeConfiguration, clock: MonotonicClock, instruments: MailInstruments
    ) {
        self.redis = redis
        self.keyspace = keyspace
        self.partitions = partitions
        self.senders = senders
        self.configuration = configuration
        self.clock = clock
        self.instruments = instruments
    }

    /// The part of a send that goes to one partition.
    struct Part: Sendable {
        var sender: Sender
        var encodedSend: EncodedSend
        /// The positions of its recipients in the whole send.
        var positions: [Int]
    }

    func parts(of encodedSend: EncodedSend) -> [Part] {
        Dictionary(grouping: encodedSend.recipients.indices) { keyspace.partition(of: encodedSend.recipients[$0]) }
            .sorted { $0.key < $1.key }
            .map { Part(sender: senders[$0.key], encodedSend: encodedSend.part($0.value), positions: $0.value) }
    }

    func home(of id: String) -> Partition { partitions[keyspace.partition(of: id)] }

    // MARK: Deliver

    func serverTimes(_ parts: [Part], until end: Duration) async throws(QueueListenError) -> [Int] {
        try await concurrentMap(parts) { part throws(QueueListenError) in try await part.sender.serverTime(until: end) }
    }

    /// Delivers all parts.
    ///
    /// - Parameter serverTimes: the time by each partition's clock. It must be requested before the
    ///   check that the send is unfinished.
    /// - Returns: the index of each recipient's first message.
    func deliver(
        _ send: RecordedSend, _ encodedSend: EncodedSend, _ parts: [Part], _ fingerprint: String, _ serverTimes: [Int],
        _ durability: Durability, until end: Duration
    ) async throws(QueueListenError) -> [Int] {
        let answers = try await concurrentMap(Array(zip(parts, serverTimes))) { (part, time) throws(QueueListenError) in
            try await part.sender.deliver(
                part: part.encodedSend, sender: send.sender, fingerprint: fingerprint,
                deadline: time + Self.deliveryWindow,
                answerLifetime: Self.partLifetime, durability, until: end)
        }
        var firstIndices = Array(repeating: 0, count: encodedSend.recipients.count)
        for (part, answer) in zip(parts, answers) {
            for (position, first) in zip(part.positions, answer) { firstIndices[position] = first }
        }
        return firstIndices
    }

    /// Records that the send is finished. If this fails, the process that takes the send over does
    /// it.
    func finish(_ send: RecordedSend, _ parts: [Part], _ firstIndices: [Int], _ lifetime: Duration) async {
        let indices = firstIndices.map { "\($0)" }.joined(separator: " ")
        var keys = [send.recordKey, send.indexKey]
        // A server that has lost the end of the send has then lost this as well.
        let isAtHome = parts.count == 1 && parts[0].sender.partition === send.home
        if isAtHome { keys.append(send.home.keys.sent(send.sender)) }
        let reply = try? await redis.script(
            Scripts.finish, keys: keys,
            arguments: [.string(send.id), .string(indices), .integer(lifetime.wholeMilliseconds)],
            timeout: configuration.callTimeout)
        guard reply?.integer == 1, !isAtHome else { return }
        let finishedSend = FinishedSend(
            send: send, senders: parts.map(\.sender), lifetime: lifetime,
            forgetAt: clock.now() + configuration.takeOverAfter / 2 * Self.roundsBeforeForgetting)
        finished.withLock { finished in
            if finished.count < Self.maxFinishedSends { finished.append(finishedSend) }
        }
    }

    /// Shortens the time for which the partitions remember their parts of finished sends, if the home still knows that
    /// they are finished.
    func forgetFinishedSends() async {
        let now = clock.now()
        while let oldest = finished.withLock({ finished -> FinishedSend? in
            guard let first = finished.first, first.forgetAt <= now else { return nil }
            return finished.removeFirst()
        }) {
            do {
                let key = RedisArgument.string(oldest.send.recordKey)
                guard try await redis.send("HEXISTS", key, "p").integer == 0 else { continue }
            } catch {
                // The home cannot be reached, so nobody can take the send over either: later.
                finished.withLock { $0.append(oldest.again(at: now + configuration.takeOverAfter)) }
                return
            }
            for sender in oldest.senders { await sender.expireAnswer(of: oldest.send.sender, after: oldest.lifetime) }
        }
    }

    /// Calls `body` for all items concurrently. When all have ended, throws the error of the first
    /// item that failed.
    func concurrentMap<Item: Sendable, Value: Sendable>(
        _ items: [Item], _ body: @escaping @Sendable (Item) async throws(QueueListenError) -> Value
    ) async throws(QueueListenError) -> [Value] {
        let results = await withTaskGroup(of: (Int, Result<Value, QueueListenError>).self) { group in
            for (number, item) in items.enumerated() {
                group.addTask {
                    do throws(QueueListenError) { return (number, .success(try await body(item))) } catch {
                        return (number, .failure(error))
                    }
                }
            }
            var results = [Result<Value, QueueListenError>?](repeating: nil, count: items.count)
            for await (number, result) in group { results[number] = result }
            return results
        }
        var values: [Value] = []
        for result in results { values.append(try result!.get()) }
        return values
    }

    // MARK: Resume

    /// What has become of a send that was to be delivered and finished.
    struct Ended: Sendable {
        /// Otherwise another process has finished it, it was given up, or it was missed.
        var isDelivered = false
        /// When the next occurrence of a recurring send is due, in milliseconds since 1970.
        var next: Int?
    }

    /// Delivers and finishes a send that another process, or another call, has recorded.
    ///
    /// - Parameter homeTime: the time by the home's clock, in milliseconds since 1970, if it was requested before.
    func resume(_ send: RecordedSend, homeTime: Int? = nil) async throws -> Ended {
        let key = RedisArgument.string(send.recordKey)
        let found = try await redis.send("HMGET", key, "p", "f", "d", "r").array ?? []
        guard found.count == 4, let encodedSend = found[0].bytes.flatMap({ EncodedSend(encoded: $0) }),
            let fingerprint = found[1].string
        else {
            // Either another process has just finished the send: it removes the encoded send and keeps the fingerprint.
            // Or the record has expired with its fingerprint, or cannot be decoded: the send is given up. Only the
            // process that removes the id reports that.
            let isFirst = try await redis.send("ZREM", .string(send.indexKey), .string(send.id)).integer == 1
            let isFinished = found.count == 4 && found[0].isNull && !found[1].isNull
            if isFirst, !isFinished { instruments.gaveUp(send.kind) }
            return Ended()
        }
        if let rule = found[3].string, let due = found[2].integer, let homeTime {
            return try await begin(send, try RecurrenceRule(text: rule), encodedSend, due: due, homeTime)
        }
        return try await complete(send, encodedSend, fingerprint, homeTime)
    }

    /// Delivers a send if it is still unfinished, and finishes it.
    ///
    /// - Parameter homeTime: the time by the home's clock, if it was requested before it was seen to be unfinished.
    private func complete(
        _ send: RecordedSend, _ encodedSend: EncodedSend, _ fingerprint: String, _ homeTime: Int?
    ) async throws -> Ended {
        let end = clock.now() + configuration.callTimeout
        let parts = parts(of: encodedSend)
        let times: [Int]
        if let homeTime, parts.count == 1, parts[0].sender.partition === send.home {
            times = [homeTime]
        } else {
            times = try await serverTimes(parts, until: end)
            guard try await redis.send("HEXISTS", .string(send.recordKey), "p").integer == 1 else { return Ended() }
        }
        let firstIndices = try await deliver(send, encodedSend, parts, fingerprint, times, .memory, until: end)
        await finish(send, parts, firstIndices, configuration.recordedSendLifetime)
        return Ended(isDelivered: true)
    }

    /// Makes an occurrence of a recurring send a scheduled send of its own, unless it is too late, records when the next one
    /// is due, and delivers it.
    private func begin(
        _ recurring: RecordedSend, _ rule: RecurrenceRule, _ encodedSend: EncodedSend, due: Int, _ homeTime: Int
    ) async throws -> Ended {
        // Another process may have begun it meanwhile.
        guard due <= homeTime else { return Ended() }
        let occurrence = RecordedSend(id: "\(recurring.id)@\(due)", kind: .later, home: recurring.home)
        let encodedOccurrence = encodedSend.occurrence(at: due)
        let fingerprint = encodedOccurrence.fingerprint
        let isMissed = rule.skips(homeTime - due)
        let next = rule.recurrence.next(after: homeTime)
        let reply = try await redis.script(
            Scripts.advance, keys: [recurring.recordKey, recurring.indexKey, occurrence.recordKey],
            arguments: [
                .string(recurring.id), .integer(due), next.map { .integer($0) } ?? "",
                .integer(configuration.recordedSendLifetime.wholeMilliseconds), .string(isMissed ? "" : occurrence.id),
                .string(fingerprint), .bytes(encodedOccurrence.encoded),
                .integer(Self.recordLifetime.wholeMilliseconds),
                .integer(configuration.takeOverAfter.wholeMilliseconds), .integer(configuration.maxScheduledSends),
            ], timeout: configuration.callTimeout)
        guard reply.array?.first?.integer == 1 else { return Ended() }
        guard reply.array?.last?.integer == 1 else {
            instruments.missedOccurrence()
            return Ended(next: next)
        }
        var ended = Ended(next: next)
        do {
            ended.isDelivered = try await complete(occurrence, encodedOccurrence, fingerprint, homeTime).isDelivered
        } catch {
            // It is a send of its own now, and will be taken again.
            instruments.cannotCarryOut(QueueListenError(error))
        }
        return ended
    }
}
