import CoordinationBase
// Sends to mailboxes of several partitions: either all recipients eventually get the messages, or none does.
//
// One script cannot touch two partitions. A cross-partition send therefore has four steps:
//
// 1. Each partition checks whether it would accept its part.
// 2. The whole send is recorded in one partition, its home. From then on it is committed.
// 3. Each partition delivers its part, under the send's id.
// 4. The home records that all parts are delivered.
//
// A post office that finds a recorded send that has been unfinished for a while continues it. Each step has one effect,
// however often and by however many processes it is executed.
//
// A step that arrives very late must not have a second effect. A partition remembers its part for at least a minute
// after the whole send is finished, and until the home partition has confirmed some rounds later that its record
// still says so: a home that loses the last step in a failover makes others deliver again. It delivers the part only
// within half a minute of the time that it reported. A process that is about to deliver a part requests this time
// first, and only then checks that the send is still unfinished. All times that are compared therefore come from the
// same clock.
import DequeModule
import Hiredis

/// A send whose parts the partitions remember longer than necessary.
private struct FinishedSend: Sendable {
    var id: String
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

/// Executes this process's cross-partition sends, and finishes those that other processes left
/// behind.
final class CrossPartitionSender: Sendable {
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
    private static let recordLifetime = Duration.seconds(29 * 86400)
    /// The time for which the partitions remember the parts of an unfinished send: longer than the
    /// send itself is kept.
    private static let partLifetime = Duration.seconds(30 * 86400)
    /// The time after which the parts of a finished send are forgotten, in rounds of ``run()``.
    private static let roundsBeforeForgetting = 16
    /// The maximum number of finished sends whose parts are to be forgotten. The parts of others expire by themselves.
    private static let maxFinishedSends = 100_000
    /// The maximum number of partitions that one round of taking over visits.
    private static let maxPartitionsPerRound = 16
    /// The maximum number of sends that a round takes over in each partition.
    private static let maxSendsPerPartition = 16

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
    private struct Part: Sendable {
        var sender: Sender
        var encodedSend: EncodedSend
        /// The positions of its recipients in the whole send.
        var positions: [Int]
    }

    private func parts(of encodedSend: EncodedSend) -> [Part] {
        Dictionary(grouping: encodedSend.recipients.indices) { keyspace.partition(of: encodedSend.recipients[$0]) }
            .sorted { $0.key < $1.key }
            .map { Part(sender: senders[$0.key], encodedSend: encodedSend.part($0.value), positions: $0.value) }
    }

    private func home(of id: String) -> Partition { partitions[keyspace.partition(of: id)] }

    // MARK: Send

    /// Sends messages to mailboxes of several partitions.
    ///
    /// - Throws: the codes of `PostOffice.send`.
    func send(_ request: SendRequest, id: String?, _ durability: Durability) async throws(QueueListenError) -> Receipt {
        let sendID = id ?? randomID()
        let lifetime = id == nil ? configuration.ownIDLifetime : configuration.sendIDLifetime
        let encodedSend = request.encoded(id: sendID)
        let fingerprint = encodedSend.fingerprint
        let parts = parts(of: encodedSend)
        let end = clock.now() + configuration.callTimeout
        let writes = DurableWrites(redis: redis, durability: durability)
        do { try await writes.prepare() } catch { throw QueueListenError(error) }

        var serverTimes: [Int]
        do {
            serverTimes = try await concurrentMap(parts) { part throws(QueueListenError) in
                try await part.sender.probe(part.encodedSend, id: sendID, fingerprint: fingerprint, until: end)
            }
        } catch {
            // A send that an earlier call has recorded is committed: a full mailbox no longer refuses it.
            guard error.code == .mailboxFull, id != nil, try await isRecorded(sendID) else {
                // Without mayHaveRun: a probe changes nothing, so this call has had no effect.
                throw QueueListenError(error.code, error.message, underlying: error.underlying)
            }
            serverTimes = try await self.serverTimes(parts, until: end)
        }
        if let firstIndices = try await record(encodedSend, id: sendID, fingerprint, writes, until: end) {
            guard durability == .memory else {
                throw QueueListenError(
                    .notDurable, "the messages were sent by an earlier call, and their durability is unknown",
                    mayHaveRun: true)
            }
            return Receipt(id: sendID, request, firstIndices, .memory)
        }
        let firstIndices: [Int]
        do {
            firstIndices = try await deliver(
                encodedSend, parts, id: sendID, fingerprint, serverTimes, durability, until: end)
        } catch {
            throw QueueListenError(
                error.code == .cancelled || error.code == .notDurable ? error.code : .unfinished,
                "the send \"\(sendID)\" is recorded and will be finished by a running post office: \(error.message)",
                mayHaveRun: true,
                underlying: error)
        }
        await finish(parts, id: sendID, firstIndices, lifetime)
        return Receipt(id: sendID, request, firstIndices, durability)
    }

    /// Records the send in its home partition.
    ///
    /// - Returns: the index of each recipient's first message if an earlier call has finished the
    ///   send; otherwise `nil`.
    private func record(
        _ encodedSend: EncodedSend, id: String, _ fingerprint: String, _ writes: DurableWrites, until end: Duration
    ) async throws(QueueListenError) -> [Int]? {
        let home = home(of: id)
        let arguments: [RedisArgument] = [
            .integer(home.total), .string(id), .string(fingerprint), .bytes(encodedSend.encoded),
            .integer(Self.recordLifetime.wholeMilliseconds),
        ]
        return try await repeating(until: end, clock, throwing: QueueListenError.self) {
            let reply = try await writes.run(
                Scripts.begin, keys: [home.keys.meta, home.keys.sendRecord(id), home.keys.unfinishedSends],
                arguments: arguments,
                timeout: max(.milliseconds(1), min(end - clock.now(), configuration.callTimeout / 2)))
            guard let words = reply.array, words.first?.string == "ok" else {
                if reply.array?.first?.string == "conflict" { throw QueueListenError.usedID }
                throw QueueListenError(refusal: reply, partitions: home.total)
            }
            return words.count > 1 ? words[1].string?.split(separator: " ").compactMap { Int($0) } : nil
        }
    }

    private func isRecorded(_ id: String) async throws(QueueListenError) -> Bool {
        do {
            return try await redis.send("HEXISTS", .string(home(of: id).keys.sendRecord(id)), "f").integer == 1
        } catch { throw QueueListenError(error) }
    }

    // MARK: Deliver

    private func serverTimes(_ parts: [Part], until end: Duration) async throws(QueueListenError) -> [Int] {
        try await concurrentMap(parts) { part throws(QueueListenError) in try await part.sender.serverTime(until: end) }
    }

    /// Delivers all parts.
    ///
    /// - Parameter serverTimes: the time by each partition's clock. It must be requested before the
    ///   check that the send is unfinished.
    /// - Returns: the index of each recipient's first message.
    private func deliver(
        _ encodedSend: EncodedSend, _ parts: [Part], id: String, _ fingerprint: String, _ serverTimes: [Int],
        _ durability: Durability, until end: Duration
    ) async throws(QueueListenError) -> [Int] {
        let answers = try await concurrentMap(Array(zip(parts, serverTimes))) { (part, time) throws(QueueListenError) in
            try await part.sender.deliver(
                part: part.encodedSend, id: id, fingerprint: fingerprint, deadline: time + Self.deliveryWindow,
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
    private func finish(_ parts: [Part], id: String, _ firstIndices: [Int], _ lifetime: Duration) async {
        let home = home(of: id)
        let indices = firstIndices.map { "\($0)" }.joined(separator: " ")
        let reply = try? await redis.script(
            Scripts.finish, keys: [home.keys.sendRecord(id), home.keys.unfinishedSends],
            arguments: [.string(id), .string(indices), .integer(lifetime.wholeMilliseconds)],
            timeout: configuration.callTimeout)
        guard reply?.integer == 1 else { return }
        let send = FinishedSend(
            id: id, senders: parts.map(\.sender), lifetime: lifetime,
            forgetAt: clock.now() + configuration.takeOverAfter / 2 * Self.roundsBeforeForgetting)
        finished.withLock { finished in
            if finished.count < Self.maxFinishedSends { finished.append(send) }
        }
    }

    /// Shortens the time for which the partitions remember their parts of finished sends, if the home still knows that
    /// they are finished.
    private func forgetFinishedSends() async {
        let now = clock.now()
        while let send = finished.withLock({ finished -> FinishedSend? in
            guard let first = finished.first, first.forgetAt <= now else { return nil }
            return finished.removeFirst()
        }) {
            do {
                let key = RedisArgument.string(home(of: send.id).keys.sendRecord(send.id))
                guard try await redis.send("HEXISTS", key, "p").integer == 0 else { continue }
            } catch {
                // The home cannot be reached, so nobody can take the send over either: later.
                finished.withLock { $0.append(send.again(at: now + configuration.takeOverAfter)) }
                return
            }
            for sender in send.senders { await sender.expireAnswer(id: send.id, after: send.lifetime) }
        }
    }

    /// Calls `body` for all items concurrently. When all have ended, throws the error of the first
    /// item that failed.
    private func concurrentMap<Item: Sendable, Value: Sendable>(
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

    // MARK: Take over

    /// Finishes sends that other processes left behind, until the task is cancelled.
    func run() async {
        guard partitions.count > 1 else { return }
        var next = Int.random(in: 0..<partitions.count)
        while true {
            do { try await clock.sleep(configuration.takeOverAfter / 2) } catch { return }
            await forgetFinishedSends()
            for _ in 0..<min(Self.maxPartitionsPerRound, partitions.count) {
                await takeOver(in: partitions[next])
                next = (next + 1) % partitions.count
            }
        }
    }

    private func takeOver(in home: Partition) async {
        let reply = try? await redis.script(
            Scripts.takeOver, keys: [home.keys.unfinishedSends],
            arguments: [.integer(configuration.takeOverAfter.wholeMilliseconds), .integer(Self.maxSendsPerPartition)],
            timeout: configuration.callTimeout)
        for id in reply?.array?.compactMap(\.string) ?? [] {
            // The script has stored the current time with each id. It returns a send that fails here again after
            // `takeOverAfter`.
            do { try await resume(id, home) } catch { instruments.recordRetry(QueueListenError(error)) }
        }
    }

    private func resume(_ id: String, _ home: Partition) async throws {
        let key = RedisArgument.string(home.keys.sendRecord(id))
        let found = try await redis.send("HMGET", key, "p", "f").array ?? []
        guard found.count == 2, let encodedSend = found[0].bytes.flatMap({ EncodedSend(encoded: $0) }),
            let fingerprint = found[1].string
        else {
            // Either another process has just finished the send: it removes the encoded send and keeps the fingerprint.
            // Or the record has expired with its fingerprint, or cannot be decoded: the send is given up. Only the
            // process that removes the id reports that.
            let isFirst = try await redis.send("ZREM", .string(home.keys.unfinishedSends), .string(id)).integer == 1
            let isFinished = found.count == 2 && found[0].isNull && !found[1].isNull
            if isFirst, !isFinished { instruments.gaveUp() }
            return
        }
        let end = clock.now() + configuration.callTimeout
        let parts = parts(of: encodedSend)
        let serverTimes = try await serverTimes(parts, until: end)
        guard try await redis.send("HEXISTS", key, "p").integer == 1 else { return }
        let firstIndices = try await deliver(encodedSend, parts, id: id, fingerprint, serverTimes, .memory, until: end)
        await finish(parts, id: id, firstIndices, max(configuration.sendIDLifetime, configuration.ownIDLifetime))
        instruments.tookOver()
    }
}
