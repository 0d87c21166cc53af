// Sends to mailboxes of several partitions: all get it, or all eventually.
//
// One script cannot touch two partitions. So a send across them is first looked at by all (would they accept it?), then
// written down as a whole in one of them, its home; from this moment it is certain. Then each partition carries out its part, under
// the send's id, then it is noted at the home that all have it. Whoever finds one that was begun and not finished for a
// while goes on with it: every step has one effect, however often and by however many it is taken.
//
// A step that comes very late must not have an effect of its own. A partition remembers its part until the whole is
// finished and for a minute more at least, and carries it out only within half a minute of the time that it told. Who is to
// carry it out asks for this time first, and only then whether the send is still unfinished. So all times that are compared
// are of one clock.
import Hiredis
import CoordinationBase

/// This process's sends across partitions, and those of others that it finishes.
final class CrossPartitionSender: Sendable {
    private let redis: any Redis
    private let place: Namespace
    private let partitions: [Partition]
    private let senders: [Sender]
    private let configuration: PostOfficeConfiguration
    private let clock: MonotonicClock
    private let instruments: MailInstruments

    /// Within this time of a partition's own clock a part is carried out.
    private static let window = 30_000
    /// A send that cannot be finished for so long is given up, and its parts are remembered for longer than that.
    private static let givenUpAfter = Duration.seconds(29 * 86400)
    private static let remembered = Duration.seconds(30 * 86400)
    /// Partitions that are looked through, and sends that are taken over there, at one time.
    private static let maxPartitions = 16
    private static let maxSends = 16

    init(
        redis: any Redis, place: Namespace, partitions: [Partition], senders: [Sender],
        configuration: PostOfficeConfiguration, clock: MonotonicClock, instruments: MailInstruments
    ) {
        self.redis = redis
        self.place = place
        self.partitions = partitions
        self.senders = senders
        self.configuration = configuration
        self.clock = clock
        self.instruments = instruments
    }

    /// What one partition gets.
    private struct Part: Sendable {
        var sender: Sender
        var encodedSend: EncodedSend
        /// Of its recipients, in the whole.
        var positions: [Int]
    }

    private func parts(of encodedSend: EncodedSend) -> [Part] {
        Dictionary(grouping: encodedSend.recipients.indices) { place.partition(of: encodedSend.recipients[$0]) }
            .sorted { $0.key < $1.key }
            .map { Part(sender: senders[$0.key], encodedSend: encodedSend.part($0.value), positions: $0.value) }
    }

    private func home(of id: String) -> Partition { partitions[place.partition(of: id)] }

    // MARK: Send

    func send(_ order: SendRequest, id: String?, _ durability: Durability) async throws(QueueListenError) -> Receipt {
        let name = id ?? randomID()
        let lifetime = id == nil ? configuration.ownIDLifetime : configuration.sendIDLifetime
        let (encodedSend, fingerprint) = (order.encodedSend(id: name), order.fingerprint)
        let parts = parts(of: encodedSend)
        let end = clock.now() + configuration.callTimeout
        let confirmation = Confirmation(redis: redis, durability: durability)
        do { try await confirmation.prepare() } catch { throw QueueListenError(error) }

        var times: [Int]
        do {
            times = try await each(parts) { part throws(QueueListenError) in
                try await part.sender.look(at: part.encodedSend, id: name, fingerprint: fingerprint, until: end)
            }
        } catch {
            // What was written down before is not refused any more.
            guard error.code == .mailboxFull, id != nil, try await isWrittenDown(name) else {
                throw QueueListenError(error.code, error.message, underlying: error.underlying)
            }
            times = try await self.times(parts, until: end)
        }
        if let firsts = try await begin(encodedSend, id: name, fingerprint, confirmation, until: end) {
            guard durability == .memory else {
                throw QueueListenError(.notDurable, "sent before, and how durably is not known", mayHaveRun: true)
            }
            return Receipt(id: name, order, firsts, .memory)
        }
        let firsts: [Int]
        do {
            firsts = try await carryOut(encodedSend, parts, id: name, fingerprint, times, durability, until: end)
        } catch {
            throw QueueListenError(
                error.code == .cancelled || error.code == .notDurable ? error.code : .unfinished,
                "the send \"\(name)\" is written down, and will be finished: \(error.message)", mayHaveRun: true,
                underlying: error)
        }
        await finish(parts, id: name, firsts, lifetime)
        return Receipt(id: name, order, firsts, durability)
    }

    /// - Returns: the index of each recipient's first message, if all have it already.
    private func begin(
        _ encodedSend: EncodedSend, id: String, _ fingerprint: String, _ confirmation: Confirmation, until end: Duration
    ) async throws(QueueListenError) -> [Int]? {
        let home = home(of: id)
        let arguments: [RedisArgument] = [
            .integer(home.total), .string(id), .string(fingerprint), .bytes(encodedSend.encoded),
            .integer(Self.givenUpAfter.wholeMilliseconds),
        ]
        return try await repeating(until: end, clock) {
            let reply = try await confirmation.run(
                Scripts.begin, keys: [home.meta, home.split(id), home.splits], arguments: arguments,
                timeout: max(.milliseconds(1), min(end - clock.now(), configuration.callTimeout / 2)))
            guard let words = reply.array, words.first?.string == "ok" else {
                if reply.array?.first?.string == "conflict" { throw QueueListenError.usedID }
                throw QueueListenError(refusal: reply, partitions: home.total)
            }
            return words.count > 1 ? words[1].string?.split(separator: " ").compactMap { Int($0) } : nil
        }
    }

    private func isWrittenDown(_ id: String) async throws(QueueListenError) -> Bool {
        do {
            return try await redis.send("HEXISTS", .string(home(of: id).split(id)), "f").integer == 1
        } catch { throw QueueListenError(error) }
    }

    // MARK: Carry out

    private func times(_ parts: [Part], until end: Duration) async throws(QueueListenError) -> [Int] {
        try await each(parts) { part throws(QueueListenError) in try await part.sender.time(until: end) }
    }

    /// - Parameter times: by each partition's clock, from before it was known that the send is unfinished.
    /// - Returns: the index of each recipient's first message.
    private func carryOut(
        _ encodedSend: EncodedSend, _ parts: [Part], id: String, _ fingerprint: String, _ times: [Int],
        _ durability: Durability,
        until end: Duration
    ) async throws(QueueListenError) -> [Int] {
        let answers = try await each(Array(zip(parts, times))) { (part, time) throws(QueueListenError) in
            try await part.sender.carryOut(
                part.encodedSend, id: id, fingerprint: fingerprint, by: time + Self.window, kept: Self.remembered,
                durability, until: end)
        }
        var firsts = Array(repeating: 0, count: encodedSend.recipients.count)
        for (part, answer) in zip(parts, answers) {
            for (position, first) in zip(part.positions, answer) { firsts[position] = first }
        }
        return firsts
    }

    /// What does not get through here is done by who takes the send over.
    private func finish(_ parts: [Part], id: String, _ firsts: [Int], _ lifetime: Duration) async {
        let home = home(of: id)
        let indices = firsts.map { "\($0)" }.joined(separator: " ")
        let reply = try? await redis.script(
            Scripts.finish, keys: [home.split(id), home.splits],
            arguments: [.string(id), .string(indices), .integer(lifetime.wholeMilliseconds)],
            timeout: configuration.callTimeout)
        guard reply?.integer == 1 else { return }
        _ = try? await each(parts) { part in await part.sender.forget(id: id, after: lifetime) }
    }

    /// All at once; the first error, when all have ended.
    private func each<Item: Sendable, Value: Sendable>(
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

    // MARK: Finish what others have begun

    /// Until the task is cancelled.
    func run() async {
        guard partitions.count > 1 else { return }
        var next = Int.random(in: 0..<partitions.count)
        while true {
            do { try await clock.sleep(configuration.takeOverAfter / 2) } catch { return }
            for _ in 0..<min(Self.maxPartitions, partitions.count) {
                await takeOver(in: partitions[next])
                next = (next + 1) % partitions.count
            }
        }
    }

    private func takeOver(in home: Partition) async {
        let reply = try? await redis.script(
            Scripts.takeOver, keys: [home.splits],
            arguments: [.integer(configuration.takeOverAfter.wholeMilliseconds), .integer(Self.maxSends)],
            timeout: configuration.callTimeout)
        for id in reply?.array?.compactMap(\.string) ?? [] {
            // What fails here comes again.
            do { try await goOn(with: id, home) } catch { instruments.isHeldUp(QueueListenError(error)) }
        }
    }

    private func goOn(with id: String, _ home: Partition) async throws {
        let key = RedisArgument.string(home.split(id))
        let found = try await redis.send("HMGET", key, "p", "f").array ?? []
        guard found.count == 2, let encodedSend = found[0].bytes.flatMap({ EncodedSend(encoded: $0) }),
            let fingerprint = found[1].string
        else {
            // It is gone, or was finished in this moment.
            let isFirst = try await redis.send("ZREM", .string(home.splits), .string(id)).integer == 1
            if isFirst, found.last?.isNull != false { instruments.gaveUp() }
            return
        }
        let end = clock.now() + configuration.callTimeout
        let parts = parts(of: encodedSend)
        let times = try await times(parts, until: end)
        guard try await redis.send("HEXISTS", key, "p").integer == 1 else { return }
        let firsts = try await carryOut(encodedSend, parts, id: id, fingerprint, times, .memory, until: end)
        await finish(parts, id: id, firsts, max(configuration.sendIDLifetime, configuration.ownIDLifetime))
        instruments.tookOver()
    }
}
