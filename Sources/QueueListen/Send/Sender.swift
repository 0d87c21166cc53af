// Sends to the mailboxes of one partition, again when the answer is lost, with one effect.
import Hiredis
import CoordinationBase

/// Numbers the sends of this process to one partition, and sees each through.
final class Sender: Sendable {
    private let redis: any Redis
    private let partition: Partition
    private let configuration: PostOfficeConfiguration
    private let clock: MonotonicClock
    /// Names this sender: its requests are numbered, and their answers kept until it has told that they have arrived.
    private let name = randomID()
    private let window = Locked(RequestWindow())
    private let confirmed = Locked(Confirmed())

    init(redis: any Redis, partition: Partition, configuration: PostOfficeConfiguration, clock: MonotonicClock) {
        self.redis = redis
        self.partition = partition
        self.configuration = configuration
        self.clock = clock
    }

    /// A request to mail_send.lua, but for the messages.
    private struct Request {
        var sender: String
        var number = "1"
        /// SETTLED, or what part of a send across partitions it is.
        var settled = ""
        var kept: Duration
        var fingerprint: String
    }

    /// - Parameter id: the caller's own, or `nil`.
    func send(
        _ order: SendRequest, id: String?, _ durability: Durability
    ) async throws(QueueListenError) -> Receipt {
        let confirmation = Confirmation(redis: redis, durability: durability)
        do { try await confirmation.prepare() } catch { throw QueueListenError(error) }
        let end = clock.now() + configuration.callTimeout
        if let id {
            let request = Request(
                sender: "id:" + id, kept: configuration.sendIDLifetime, fingerprint: order.fingerprint)
            let firsts = try await deliver(order.encodedSend(id: id), request, confirmation, until: end)
            return Receipt(id: id, order, firsts, durability)
        }
        let (number, settled) = window.withLock { ($0.next(), $0.report()) }
        // Whatever becomes of it: it is not sent again after this.
        defer { window.withLock { $0.settle(number) } }
        let own = "\(name)-\(number)"
        let request = Request(
            sender: name, number: "\(number)", settled: settled.map { "\($0)" } ?? "",
            kept: configuration.ownIDLifetime, fingerprint: "-")
        let firsts = try await deliver(order.encodedSend(id: own), request, confirmation, until: end)
        return Receipt(id: own, order, firsts, durability)
    }

    // MARK: Parts of a send across partitions

    /// Whether a part would be accepted now.
    ///
    /// - Returns: milliseconds since 1970, by the partition's clock.
    func look(
        at part: EncodedSend, id: String, fingerprint: String, until end: Duration
    ) async throws(QueueListenError) -> Int {
        let request = Request(sender: "id:" + id, settled: "l", kept: .zero, fingerprint: fingerprint)
        let (reply, _) = try await exchange(part, request, Confirmation(redis: redis, durability: .memory), end)
        return try time(reply, part)
    }

    /// Milliseconds since 1970, by the partition's clock.
    func time(until end: Duration) async throws(QueueListenError) -> Int {
        let none = EncodedSend(contents: [], recipients: [])
        let request = Request(sender: name, settled: "n", kept: .zero, fingerprint: "")
        let (reply, _) = try await exchange(none, request, Confirmation(redis: redis, durability: .memory), end)
        return try time(reply, none)
    }

    private func time(_ reply: RESPValue, _ part: EncodedSend) throws(QueueListenError) -> Int {
        guard let parts = reply.array, parts.first?.string == "ok", let time = parts.last?.integer else {
            throw refusal(reply, part)
        }
        return time
    }

    /// Carries a part out, once, whatever the limits.
    ///
    /// - Parameter time: until when by the partition's clock, milliseconds since 1970.
    /// - Returns: the index of each recipient's first message.
    func carryOut(
        _ part: EncodedSend, id: String, fingerprint: String, by time: Int, kept: Duration, _ durability: Durability,
        until end: Duration
    ) async throws(QueueListenError) -> [Int] {
        let request = Request(sender: "id:" + id, settled: "b\(time)", kept: kept, fingerprint: fingerprint)
        return try await deliver(part, request, Confirmation(redis: redis, durability: durability), until: end)
    }

    /// From now on the part is remembered for so long only.
    func forget(id: String, after lifetime: Duration) async {
        _ = try? await redis.send(
            "PEXPIRE", .string(partition.sent("id:" + id)), .integer(lifetime.wholeMilliseconds))
    }

    // MARK: The script

    private func deliver(
        _ encodedSend: EncodedSend, _ request: Request, _ confirmation: Confirmation, until end: Duration
    ) async throws(QueueListenError) -> [Int] {
        let (reply, tags) = try await exchange(encodedSend, request, confirmation, end)
        let parts = reply.array ?? []
        guard parts.first?.string == "ok" else { throw refusal(reply, encodedSend) }
        let firsts = parts.dropFirst().first?.string?.split(separator: " ").compactMap { Int($0) } ?? []
        guard firsts.count == encodedSend.recipients.count else { throw refusal(reply, encodedSend) }
        if let epochs = parts.last?.bytes { remember(firsts, epochs, encodedSend, tags) }
        return firsts
    }

    /// Sends it until there is an answer.
    private func exchange(
        _ encodedSend: EncodedSend, _ request: Request, _ confirmation: Confirmation, _ end: Duration
    ) async throws(QueueListenError) -> (RESPValue, tags: [UInt64]) {
        let keys = encodedSend.keys(in: partition, sender: request.sender)
        let fixed: [RedisArgument] =
            partition.limits + [
                .string(request.number), .string(request.settled), .integer(request.kept.wholeMilliseconds),
                .string(request.fingerprint), .integer(encodedSend.contents.count),
            ]
        return try await repeating(until: end, clock) {
            let (messages, tags) = encodedSend.arguments()
            let knowledge = confirmed.withLock { $0.knowledge(of: encodedSend.recipients) }
            let reply = try await confirmation.run(
                Scripts.send, keys: keys, arguments: partition.head + fixed + [knowledge] + messages,
                timeout: max(.milliseconds(1), min(end - clock.now(), configuration.callTimeout / 2)))
            return (reply, tags)
        }
    }

    private func refusal(_ reply: RESPValue, _ encodedSend: EncodedSend) -> QueueListenError {
        let parts = reply.array ?? []
        switch parts.first?.string {
        case "full":
            guard let number = parts.last?.integer, encodedSend.recipients.indices.contains(number - 1) else { break }
            return QueueListenError(.mailboxFull, "the mailbox \"\(encodedSend.recipients[number - 1])\" is full")
        case "conflict": return .usedID
        case "stale", "late":
            return QueueListenError(.connectionLost, "the send came too late", mayHaveRun: true)
        default: break
        }
        return QueueListenError(refusal: reply, partitions: partition.total)
    }

    /// - Parameter epochs: of the recipients' mailboxes, 8 bytes each; none when this was answered before.
    private func remember(_ firsts: [Int], _ epochs: [UInt8], _ encodedSend: EncodedSend, _ tags: [UInt64]) {
        guard epochs.count == 8 * firsts.count else { return }
        confirmed.withLock { confirmed in
            for (position, first) in firsts.enumerated() {
                guard let epoch = UInt64(mark: epochs[(8 * position)..<(8 * position + 8)]) else { continue }
                let last = Cursor(
                    epoch: epoch, index: first + encodedSend.count(of: position) - 1,
                    tag: tags[encodedSend.last(of: position)])
                confirmed.note(last, in: encodedSend.recipients[position])
            }
        }
    }
}

extension Receipt {
    /// - Parameter firsts: the index of each recipient's first message.
    init(id: String, _ order: SendRequest, _ firsts: [Int], _ durability: Durability) {
        var indices: [String: ClosedRange<Int>] = [:]
        for (position, first) in firsts.enumerated() {
            let count = order.shares?[position].count ?? order.messages.count
            indices[order.recipients[position]] = first...(first + count - 1)
        }
        self.init(id: id, indices: indices, durability: durability)
    }
}

extension QueueListenError {
    static var usedID: QueueListenError {
        QueueListenError(.conflict, "the send id has been used for something else")
    }
}

extension PostOfficeConfiguration {
    /// For how long answers to sends without an id of the caller's own are kept: longer than any of them is repeated.
    var ownIDLifetime: Duration { max(.seconds(60), callTimeout * 4) }
}
