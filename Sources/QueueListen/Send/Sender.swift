// Sends to the mailboxes of one partition, with retries and exactly one effect.
import Hiredis
import CoordinationBase

/// Numbers this process's sends to one partition, and retries each until it is answered.
final class Sender: Sendable {
    private let redis: any Redis
    private let partition: Partition
    private let configuration: PostOfficeConfiguration
    private let clock: MonotonicClock
    /// Identifies this sender. The server keeps the answers to its numbered requests until it is
    /// told that they have arrived.
    private let name = randomID()
    private let window = Locked(RequestWindow())
    private let confirmed = Locked(ConfirmedMessages())

    init(redis: any Redis, partition: Partition, configuration: PostOfficeConfiguration, clock: MonotonicClock) {
        self.redis = redis
        self.partition = partition
        self.configuration = configuration
        self.clock = clock
    }

    /// The mode of mail_send.lua: its twelfth argument.
    private enum Mode {
        /// Sends. The answers to all requests up to `settled` have arrived and can be deleted.
        case send(settled: UInt64?)
        /// Returns the server's time and does nothing else.
        case time
        /// Checks whether a part of a cross-partition send would be accepted.
        case probe
        /// Sends a part of a cross-partition send, regardless of limits, until this time of the
        /// server's clock in milliseconds since 1970.
        case part(until: Int)

        var argument: String {
            switch self {
            case .send(let settled): settled.map { "\($0)" } ?? ""
            case .time: "n"
            case .probe: "l"
            case .part(let time): "b\(time)"
            }
        }
    }

    /// The arguments of mail_send.lua except the messages.
    private struct ScriptRequest {
        var sender: String
        var number = "1"
        var mode: Mode
        /// The time for which the server keeps the answer.
        var answerLifetime: Duration
        var fingerprint: String
    }

    /// Sends messages to mailboxes of this partition: to all or to none.
    ///
    /// - Parameter id: the caller's own id, or `nil`.
    /// - Throws: the codes of `PostOffice.send`.
    func send(
        _ request: SendRequest, id: String?, _ durability: Durability
    ) async throws(QueueListenError) -> Receipt {
        let confirmation = Confirmation(redis: redis, durability: durability)
        do { try await confirmation.prepare() } catch { throw QueueListenError(error) }
        let end = clock.now() + configuration.callTimeout
        if let id {
            let scriptRequest = ScriptRequest(
                sender: "id:" + id, mode: .send(settled: nil), answerLifetime: configuration.sendIDLifetime,
                fingerprint: request.fingerprint)
            let firstIndices = try await deliver(request.encoded(id: id), scriptRequest, confirmation, until: end)
            return Receipt(id: id, request, firstIndices, durability)
        }
        let (number, settled) = window.withLock { ($0.next(), $0.report()) }
        // Whether it succeeds or fails, it is not sent again after this call.
        defer { window.withLock { $0.settle(number) } }
        let ownID = "\(name)-\(number)"
        let scriptRequest = ScriptRequest(
            sender: name, number: "\(number)", mode: .send(settled: settled),
            answerLifetime: configuration.ownIDLifetime, fingerprint: "-")
        let firstIndices = try await deliver(request.encoded(id: ownID), scriptRequest, confirmation, until: end)
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
        let (reply, _) = try await exchange(part, request, Confirmation(redis: redis, durability: .memory), end)
        return try time(reply, part)
    }

    /// Returns the time by the partition's clock, in milliseconds since 1970.
    func serverTime(until end: Duration) async throws(QueueListenError) -> Int {
        let none = EncodedSend(contents: [], recipients: [])
        let request = ScriptRequest(sender: name, mode: .time, answerLifetime: .zero, fingerprint: "")
        let (reply, _) = try await exchange(none, request, Confirmation(redis: redis, durability: .memory), end)
        return try time(reply, none)
    }

    private func time(_ reply: RESPValue, _ part: EncodedSend) throws(QueueListenError) -> Int {
        guard let parts = reply.array, parts.first?.string == "ok", let time = parts.last?.integer else {
            throw refusal(reply, part)
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
        return try await deliver(part, request, Confirmation(redis: redis, durability: durability), until: end)
    }

    /// Shortens the time for which the partition remembers a delivered part.
    func expireAnswer(id: String, after lifetime: Duration) async {
        _ = try? await redis.send(
            "PEXPIRE", .string(partition.sent("id:" + id)), .integer(lifetime.wholeMilliseconds))
    }

    // MARK: The script

    private func deliver(
        _ encodedSend: EncodedSend, _ request: ScriptRequest, _ confirmation: Confirmation, until end: Duration
    ) async throws(QueueListenError) -> [Int] {
        let (reply, tags) = try await exchange(encodedSend, request, confirmation, end)
        let parts = reply.array ?? []
        guard parts.first?.string == "ok" else { throw refusal(reply, encodedSend) }
        let firstIndices = parts.dropFirst().first?.string?.split(separator: " ").compactMap { Int($0) } ?? []
        guard firstIndices.count == encodedSend.recipients.count else { throw refusal(reply, encodedSend) }
        if let epochs = parts.last?.bytes { record(firstIndices, epochs, encodedSend, tags) }
        return firstIndices
    }

    /// Runs the script, with retries, until there is a reply.
    private func exchange(
        _ encodedSend: EncodedSend, _ request: ScriptRequest, _ confirmation: Confirmation, _ end: Duration
    ) async throws(QueueListenError) -> (RESPValue, tags: [UInt64]) {
        let keys = encodedSend.keys(in: partition, sender: request.sender)
        let fixed: [RedisArgument] =
            partition.limits + [
                .string(request.number), .string(request.mode.argument),
                .integer(request.answerLifetime.wholeMilliseconds),
                .string(request.fingerprint), .integer(encodedSend.contents.count),
            ]
        return try await repeating(until: end, clock) {
            let (messages, tags) = encodedSend.arguments()
            let known = confirmed.withLock { $0.argument(for: encodedSend.recipients) }
            let reply = try await confirmation.run(
                Scripts.send, keys: keys, arguments: partition.head + fixed + [known] + messages,
                timeout: max(.milliseconds(1), min(end - clock.now(), configuration.callTimeout / 2)))
            return (reply, tags)
        }
    }

    private func refusal(_ reply: RESPValue, _ encodedSend: EncodedSend) -> QueueListenError {
        let parts = reply.array ?? []
        switch parts.first?.string {
        case "full":
            guard let number = parts.last?.integer, encodedSend.recipients.indices.contains(number - 1) else { break }
            return QueueListenError(
                .mailboxFull,
                "the mailbox \"\(encodedSend.recipients[number - 1])\" is full: nothing was sent; "
                    + "try again when its messages are acknowledged, or raise its limits")
        case "conflict": return .usedID
        case "stale", "late":
            return QueueListenError(
                .connectionLost, "the request reached Redis too late and was refused", mayHaveRun: true)
        default: break
        }
        return QueueListenError(refusal: reply, partitions: partition.total)
    }

    /// Remembers the last message in each recipient's mailbox.
    ///
    /// - Parameter epochs: the epoch of each recipient's mailbox, 8 bytes each; empty when the
    ///   server repeated an earlier answer.
    private func record(_ firstIndices: [Int], _ epochs: [UInt8], _ encodedSend: EncodedSend, _ tags: [UInt64]) {
        guard epochs.count == 8 * firstIndices.count else { return }
        confirmed.withLock { confirmed in
            for (position, first) in firstIndices.enumerated() {
                guard let epoch = UInt64(bigEndianBytes: epochs[(8 * position)..<(8 * position + 8)]) else { continue }
                let last = Cursor(
                    epoch: epoch, index: first + encodedSend.count(of: position) - 1,
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
