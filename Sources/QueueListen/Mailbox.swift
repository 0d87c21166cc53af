// A recipient's mailbox: listening to it, and looking after it.
import Hiredis

/// A recipient's mailbox.
///
/// ```swift
/// let mailbox = try office.mailbox("alice")
/// var cursor: Cursor?
/// while true {
///     let delivery = try await mailbox.listen(after: cursor, timeout: .seconds(30))
///     switch delivery.status { … }
///     cursor = delivery.cursor
/// }
/// ```
///
/// Passing a cursor to `listen` proves that everything up to it has arrived; only then is it deleted. A process that dies
/// before gets it again. Several devices of one recipient listen under different names: each has its own place, and a
/// message is deleted when all have it.
///
/// The values of this type are cheap; make one where you need it.
public struct Mailbox: Sendable {
    /// The device of those who name none.
    public static let defaultDevice = "default"

    public let name: String
    let office: PostOffice
    let partition: Partition
    let listeners: Listeners

    // MARK: Listen

    /// Returns what is there behind the cursor; if nothing is, waits for it.
    ///
    /// The cursor acknowledges: what lies up to it is deleted when every device has acknowledged it. Deliveries that do not
    /// arrive come again with the next call, from the same cursor.
    ///
    /// - Parameters:
    ///   - cursor: the one of the last delivery. `nil`: where this device has acknowledged up to, or at the beginning.
    ///   - device: 1 to 128 bytes of UTF-8 without control characters or braces; at most 64 devices of a mailbox.
    ///   - limit: most messages, 1 to 10,000.
    ///   - maxBytes: most bytes, from 1; but one message always comes.
    ///   - timeout: how long to wait; `nil` as long as it takes, 0 looks once.
    /// - Throws: `.invalidArgument`, `.cancelled`, `.stopped`, `.wrongType`, `.notPermitted`, `.conflict` (65th device, other
    ///   number of partitions); `.connectionLost` and `.notConnected` when Redis could not be asked until the time was up,
    ///   or has not answered a second later. Breaks of the connection before that are bridged. Nothing is lost by any of
    ///   them.
    public func listen(
        after cursor: Cursor? = nil, device: String = Self.defaultDevice, limit: Int = 1000,
        maxBytes: Int = 4 * 1024 * 1024, timeout: Duration? = nil
    ) async throws(QueueListenError) -> Delivery {
        let poll = try poll(after: cursor, device, limit, maxBytes, timeout)
        if office.instruments.isDisabled { await listeners.carryOut(poll) } else { await carryOutObserved(poll) }
        return try poll.delivery()
    }

    /// Apart, so that its frame is there only when there is something to count or to trace.
    @inline(never)
    private func carryOutObserved(_ poll: Poll) async {
        await office.instruments.listening(poll) { await listeners.carryOut(poll) }
    }

    /// Apart, so that what it takes to make it is not in the frames of those who wait.
    @inline(never)
    private func poll(
        after cursor: Cursor?, _ device: String, _ limit: Int, _ maxBytes: Int, _ timeout: Duration?
    ) throws(QueueListenError) -> Poll {
        try MailName.validate(device, "device", longest: 128)
        try Self.check(limit: limit, maxBytes: maxBytes)
        if let timeout, timeout < .zero {
            throw QueueListenError(.invalidArgument, "timeout is \(timeout), expected 0 or more")
        }
        return listeners.poll(
            name, device: device, after: cursor, most: limit, maxBytes: maxBytes, timeout: timeout)
    }

    /// Acknowledges without reading on: what lies up to the cursor is deleted when every device has it.
    ///
    /// - Returns: whether the cursor is one of this mailbox as it is now. If not, nothing has been acknowledged: see `listen`.
    /// - Throws: as ``listen(after:device:limit:maxBytes:timeout:)``.
    @discardableResult
    public func acknowledge(
        _ cursor: Cursor, device: String = Self.defaultDevice
    ) async throws(QueueListenError) -> Bool {
        try MailName.validate(device, "device", longest: 128)
        let reply = try await run(
            Scripts.listen,
            partition.limits + [
                .string(device), .string(partition.process), 0, 2, 0, .integer(cursor.index), .bytes(cursor.epoch.mark),
                .bytes(cursor.tag.mark), 0, 1,
            ])
        return try ReadReply(reply, partitions: partition.total).status == .ok
    }

    private static func check(limit: Int, maxBytes: Int) throws(QueueListenError) {
        guard (1...10_000).contains(limit) else {
            throw QueueListenError(.invalidArgument, "limit is \(limit), expected 1 to 10,000")
        }
        guard maxBytes >= 1 else {
            throw QueueListenError(.invalidArgument, "maxBytes is \(maxBytes), expected 1 or more")
        }
    }

    // MARK: Look after

    /// Reads without acknowledging, without being a device, and without waiting.
    ///
    /// - Parameter index: reads what is behind it; 0 from the first that is there.
    public func peek(
        after index: Int = 0, limit: Int = 100, maxBytes: Int = 4 * 1024 * 1024
    ) async throws(QueueListenError) -> [ReceivedMessage] {
        try Self.check(limit: limit, maxBytes: maxBytes)
        guard index >= 0 else { throw QueueListenError(.invalidArgument, "index is \(index), expected 0 or more") }
        let reply = try await run(
            // An index has 6 bytes; the server's numbers are exact so far.
            Scripts.peek, [.integer(min(index, 1 << 48)), .integer(limit), .integer(maxBytes)])
        return try ReadReply(reply, partitions: partition.total).messages
    }

    /// How many messages wait in it, expired and replaced ones included; 0 when there is no such mailbox.
    public var count: Int {
        get async throws(QueueListenError) { try await inspect()?.count ?? 0 }
    }

    /// Deletes the mailbox with everything in it. Who listens to it, or comes back to it, is told `.reset`.
    ///
    /// - Returns: how many messages were in it; `nil` when there was none.
    @discardableResult
    public func delete() async throws(QueueListenError) -> Int? {
        let reply = try await run(Scripts.delete, [])
        guard let parts = reply.array, parts.count == 3, parts[0].string == "ok", let count = parts[1].integer else {
            throw QueueListenError(refusal: reply, partitions: partition.total)
        }
        return parts[2].integer == 1 ? count : nil
    }

    /// Gives the mailbox limits of its own, which all nodes then obey; `nil` takes them away.
    public func setLimits(_ limits: MailboxLimits?) async throws(QueueListenError) {
        try limits?.validate()
        let reply = try await run(Scripts.setLimits, [.string(limits?.words.joined(separator: " ") ?? "")])
        guard reply.array?.first?.string == "ok" else {
            throw QueueListenError(refusal: reply, partitions: partition.total)
        }
    }

    func run(_ script: RedisScript, _ arguments: [RedisArgument]) async throws(QueueListenError) -> RESPValue {
        do {
            return try await office.redis.script(
                script, keys: partition.keys(name), arguments: partition.head + arguments,
                timeout: office.configuration.callTimeout)
        } catch { throw QueueListenError(error) }
    }
}
