// Sends to mailboxes of several partitions: either all recipients eventually get the messages, or none does.
//
// One script cannot touch two partitions. First each partition checks whether it would accept its part. Then the send is
// recorded, and its parts are delivered: see RecordedSends. A post office that finds a recorded send that has been unfinished
// for a while continues it.
import CoordinationBase
import Hiredis

/// Executes this process's cross-partition sends, and finishes those that other processes left
/// behind.
final class CrossPartitionSender: Sendable {
    private let redis: any Redis
    private let partitions: [Partition]
    private let sends: RecordedSends
    private let configuration: PostOfficeConfiguration
    private let clock: MonotonicClock
    private let instruments: MailInstruments

    /// The maximum number of partitions that one round of taking over visits.
    static let maxPartitionsPerRound = 16
    /// The maximum number of sends that a round takes over in each partition.
    private static let maxSendsPerPartition = 16

    init(
        redis: any Redis, partitions: [Partition], sends: RecordedSends, configuration: PostOfficeConfiguration,
        clock: MonotonicClock, instruments: MailInstruments
    ) {
        self.redis = redis
        self.partitions = partitions
        self.sends = sends
        self.configuration = configuration
        self.clock = clock
        self.instruments = instruments
    }

    // MARK: Send

    /// Sends messages to mailboxes of several partitions.
    ///
    /// - Throws: the codes of `PostOffice.send`.
    func send(_ request: SendRequest, id: String?, _ durability: Durability) async throws(QueueListenError) -> Receipt {
        let sendID = id ?? randomID()
        let lifetime = id == nil ? configuration.ownIDLifetime : configuration.sendIDLifetime
        let encodedSend = request.encoded(id: sendID)
        let fingerprint = encodedSend.fingerprint
        let send = RecordedSend(id: sendID, kind: .acrossPartitions, home: sends.home(of: sendID))
        let parts = sends.parts(of: encodedSend)
        let end = clock.now() + configuration.callTimeout
        let writes = DurableWrites(redis: redis, durability: durability)
        do { try await writes.prepare() } catch { throw QueueListenError(error) }

        var serverTimes: [Int]
        do {
            serverTimes = try await sends.concurrentMap(parts) { part throws(QueueListenError) in
                try await part.sender.probe(part.encodedSend, id: sendID, fingerprint: fingerprint, until: end)
            }
        } catch {
            // A send that an earlier call has recorded is committed: a full mailbox no longer refuses it.
            guard error.code == .mailboxFull, id != nil, try await isRecorded(sendID) else {
                // Without mayHaveRun: a probe changes nothing, so this call has had no effect.
                throw QueueListenError(error.code, error.message, underlying: error.underlying)
            }
            serverTimes = try await sends.serverTimes(parts, until: end)
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
            firstIndices = try await sends.deliver(
                send, encodedSend, parts, fingerprint, serverTimes, durability, until: end)
        } catch {
            throw QueueListenError(
                error.code == .cancelled || error.code == .notDurable ? error.code : .unfinished,
                "the send \"\(sendID)\" is recorded and will be finished by a running post office: \(error.message)",
                mayHaveRun: true,
                underlying: error)
        }
        await sends.finish(send, parts, firstIndices, lifetime)
        return Receipt(id: sendID, request, firstIndices, durability)
    }

    /// Records the send in its home partition.
    ///
    /// - Returns: the index of each recipient's first message if an earlier call has finished the
    ///   send; otherwise `nil`.
    private func record(
        _ encodedSend: EncodedSend, id: String, _ fingerprint: String, _ writes: DurableWrites, until end: Duration
    ) async throws(QueueListenError) -> [Int]? {
        let home = sends.home(of: id)
        let arguments: [RedisArgument] = [
            .integer(home.total), .string(id), .string(fingerprint), .bytes(encodedSend.encoded),
            .integer(RecordedSends.recordLifetime.wholeMilliseconds),
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
            return try await redis.send("HEXISTS", .string(sends.home(of: id).keys.sendRecord(id)), "f").integer == 1
        } catch { throw QueueListenError(error) }
    }

    // MARK: Take over

    /// Finishes sends that other processes left behind, until the task is cancelled.
    func run() async {
        guard partitions.count > 1 else { return }
        var next = Int.random(in: 0..<partitions.count)
        while true {
            do { try await clock.sleep(configuration.takeOverAfter / 2) } catch { return }
            await sends.forgetFinishedSends()
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
            do {
                let send = RecordedSend(id: id, kind: .acrossPartitions, home: home)
                if try await sends.resume(send).isDelivered { instruments.tookOver() }
            } catch { instruments.recordRetry(QueueListenError(error)) }
        }
    }
}
