// Sends to the mailboxes of one partition, again when the answer is lost, with one effect.
import Hiredis
import Wakeup

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

    /// Answers to a sender's numbered requests; refreshed by each, and longer than any of them is repeated.
    private static let shortestLife = Duration.seconds(60)

    init(redis: any Redis, partition: Partition, configuration: PostOfficeConfiguration, clock: MonotonicClock) {
        self.redis = redis
        self.partition = partition
        self.configuration = configuration
        self.clock = clock
    }

    /// - Parameter id: the caller's own, or `nil`.
    func send(
        _ order: SendOrder, id: String?, _ durability: Durability
    ) async throws(QueueListenError) -> Receipt {
        let confirmation = Confirmation(redis: redis, durability: durability)
        do { try await confirmation.prepare() } catch { throw QueueListenError(error) }
        if let id {
            return try await carryOut(
                order, confirmation, id: id, sender: "id:" + id, number: "1", settled: nil,
                kept: configuration.sendIDLifetime,
                fingerprint: order.fingerprint)
        }
        let (number, settled) = window.withLock { ($0.next(), $0.news()) }
        // Whatever becomes of it: it is not sent again after this.
        defer { window.withLock { $0.settle(number) } }
        return try await carryOut(
            order, confirmation, id: "\(name)-\(number)", sender: name, number: "\(number)", settled: settled,
            kept: max(Self.shortestLife, configuration.callTimeout * 4), fingerprint: "-")
    }

    private func carryOut(
        _ order: SendOrder, _ confirmation: Confirmation, id: String, sender: String, number: String, settled: UInt64?,
        kept: Duration,
        fingerprint: String
    ) async throws(QueueListenError) -> Receipt {
        let keys = order.keys(in: partition, sender: sender)
        let fixed: [RedisArgument] =
            partition.limits + [
                .string(number), .string(settled.map { "\($0)" } ?? ""), .integer(kept.wholeMilliseconds),
                .string(fingerprint), .integer(order.messages.count),
            ]
        let end = clock.now() + configuration.callTimeout
        var pause = Duration.milliseconds(20)
        var mayHaveRun = false
        while true {
            let (messages, tags) = order.arguments(id: id)
            let knowledge = confirmed.withLock { $0.knowledge(of: order.recipients) }
            do {
                let reply = try await confirmation.run(
                    Scripts.send, keys: keys, arguments: partition.head + fixed + [knowledge] + messages,
                    timeout: max(.milliseconds(1), min(end - clock.now(), configuration.callTimeout / 2)))
                return try receipt(reply, order, id: id, confirmation.durability, tags)
            } catch {
                var failure = QueueListenError(error)
                mayHaveRun = mayHaveRun || failure.mayHaveRun
                failure.mayHaveRun = mayHaveRun
                guard let error = error as? RedisError, error.isPassing, clock.now() + pause < end else {
                    throw failure
                }
                do { try await clock.sleep(pause) } catch {
                    throw QueueListenError(.cancelled, "the task was cancelled", mayHaveRun: mayHaveRun)
                }
                pause = min(pause * 2, .seconds(1))
            }
        }
    }

    private func receipt(
        _ reply: RESPValue, _ order: SendOrder, id: String, _ durability: Durability, _ tags: [UInt64]
    ) throws(QueueListenError) -> Receipt {
        let parts = reply.array ?? []
        switch parts.first?.string {
        case "ok":
            let firsts = parts.dropFirst().first?.string?.split(separator: " ").compactMap { Int($0) } ?? []
            guard firsts.count == order.recipients.count else { break }
            if let epochs = parts.last?.bytes { remember(firsts, epochs, order, tags) }
            var indices: [String: ClosedRange<Int>] = [:]
            for (position, first) in firsts.enumerated() {
                indices[order.recipients[position]] = first...(first + order.count(of: position) - 1)
            }
            return Receipt(id: id, indices: indices, durability: durability)
        case "full":
            guard let number = parts.last?.integer, order.recipients.indices.contains(number - 1) else { break }
            throw QueueListenError(.mailboxFull, "the mailbox \"\(order.recipients[number - 1])\" is full")
        case "conflict":
            throw QueueListenError(.conflict, "the send id \"\(id)\" has been used for something else")
        case "stale":
            throw QueueListenError(.connectionLost, "the send came too late", mayHaveRun: true)
        default: break
        }
        throw QueueListenError(refusal: reply, partitions: partition.total)
    }

    /// - Parameter epochs: of the recipients' mailboxes, 8 bytes each; none when this was answered before.
    private func remember(_ firsts: [Int], _ epochs: [UInt8], _ order: SendOrder, _ tags: [UInt64]) {
        guard epochs.count == 8 * firsts.count else { return }
        confirmed.withLock { confirmed in
            for (position, first) in firsts.enumerated() {
                guard let epoch = UInt64(mark: epochs[(8 * position)..<(8 * position + 8)]) else { continue }
                let last = Cursor(
                    epoch: epoch, index: first + order.count(of: position) - 1, tag: tags[order.last(of: position)])
                confirmed.note(last, in: order.recipients[position])
            }
        }
    }
}
