import CoordinationBase
import Hiredis

/// A recipient's mailbox: messages in order, kept until every device has acknowledged them.
///
/// ```swift
/// let mailbox = try office.mailbox("alice")
/// var cursor: Cursor?
/// while true {
///     let delivery = try await mailbox.listen(after: cursor, timeout: .seconds(30))
///     if case .messages(let messages) = delivery.status { messages.forEach(handle) }
///     cursor = delivery.cursor
/// }
/// ```
///
/// Passing a cursor to `listen` acknowledges every message up to it; only then are these messages
/// deleted. A process that dies before it acknowledges receives them again. The devices of a
/// recipient listen under different names: each device has its own position, and a message is
/// deleted when all of them have acknowledged it.
///
/// Values of this type are small: create one wherever you need it.
public struct Mailbox: Sendable {
    /// The device of callers that do not name one.
    public static let defaultDevice = "default"

    /// The mailbox's name.
    public let name: String
    let office: PostOffice
    let partition: Partition
    let listeners: Listeners

    // MARK: Listen

    /// Returns the messages after a cursor, and waits for one if there is none.
    ///
    /// The cursor is an acknowledgement: messages up to it are deleted when every device has
    /// acknowledged them. A delivery that does not arrive is repeated by the next call with the
    /// same cursor.
    ///
    /// A loss of messages is not an error: the call returns the status ``Delivery/Status/reset``,
    /// ``Delivery/Status/forked`` or ``Delivery/Status/truncated(first:)``. When a newer call for
    /// the same device begins, in this process or another one, an older call that is still waiting
    /// returns ``Delivery/Status/superseded``.
    ///
    /// A cancelled call throws `.cancelled` immediately. No error loses a message: the next call
    /// with the same cursor returns it. A call that waits is not interrupted by a broken
    /// connection; it throws only when Redis does not answer at the end of its timeout.
    ///
    /// It can be called before ``PostOffice/run()`` has begun. After `run()` has ended it throws
    /// `.stopped`.
    ///
    /// - Parameters:
    ///   - cursor: the cursor of the last delivery. `nil` continues after the last message that
    ///     this device acknowledged, or reads from the beginning for a new device. It returns the
    ///     losses that the device has not acknowledged yet, by a cursor after them.
    ///   - device: 1 to 128 bytes of UTF-8 without control characters and braces. A mailbox has at
    ///     most 64 devices.
    ///   - limit: the maximum number of messages, 1 to 10,000. One call returns at most 1,000.
    ///   - maxBytes: the maximum number of bytes, from 1. One call returns at most 1 MiB, and one
    ///     message even if it is larger.
    ///   - timeout: the maximum time to wait, 0 or more. `nil` waits without a limit. At the end of
    ///     the timeout, never earlier, the call reads the mailbox once more, which takes at most
    ///     another second. With 0 the call reads once and does not wait for messages; it waits for
    ///     Redis for up to ``PostOfficeConfiguration/callTimeout`` plus one second.
    /// - Throws: `.invalidArgument`, `.cancelled`, `.stopped`, `.wrongType`, `.notPermitted`,
    ///   `.conflict` (a 65th device, or another number of partitions), `.serverError`;
    ///   `.connectionLost` and `.notConnected` when Redis could not be reached by the end of the
    ///   timeout, or did not answer within another second.
    public func listen(
        after cursor: Cursor? = nil, device: String = Self.defaultDevice, limit: Int = 1000,
        maxBytes: Int = 1024 * 1024, timeout: Duration? = nil
    ) async throws(QueueListenError) -> Delivery {
        try await listen(pendingListen(after: cursor, device, nil, limit, maxBytes, timeout))
    }

    /// - Parameter afterStart: as for ``WaiterRunner/carryOut(_:afterStart:)``.
    func listen(_ call: PendingListen, afterStart: () -> Void = {}) async throws(QueueListenError) -> Delivery {
        if office.instruments.isDisabled {
            await listeners.carryOut(call, afterStart: afterStart)
        } else {
            await runObserved(call, afterStart)
        }
        return try call.delivery()
    }

    /// Not inlined, so that its frame exists only when there is something to count or trace.
    @inline(never)
    private func runObserved(_ call: PendingListen, _ afterStart: () -> Void) async {
        await office.instruments.listening(call) { await listeners.carryOut(call, afterStart: afterStart) }
    }

    /// Not inlined, so that its temporaries are not in the frames of waiting callers.
    ///
    /// - Parameter reader: `nil` for a call of its own, which acknowledges its cursor.
    @inline(never)
    func pendingListen(
        after cursor: Cursor?, _ device: String, _ reader: ListenRequest.Reader?, _ limit: Int, _ maxBytes: Int,
        _ timeout: Duration?
    ) throws(QueueListenError) -> PendingListen {
        try validate(device: device, "listen to")
        try check(limit: limit, maxBytes: maxBytes, "listen to")
        if let timeout, timeout < .zero { throw invalid("timeout is \(timeout), expected 0 or more", "listen to") }
        return listeners.pendingListen(
            name, device: device, reader: reader, after: cursor, maxMessages: limit, maxBytes: maxBytes,
            timeout: timeout)
    }

    /// Acknowledges without reading: messages up to the cursor are deleted when every device has
    /// acknowledged them.
    ///
    /// Acknowledging twice has no second effect, so a call that throws can be repeated. It takes at
    /// most ``PostOfficeConfiguration/callTimeout``. A cancelled call throws `.cancelled`
    /// immediately; if ``QueueListenError/mayHaveRun`` is true, the messages may have been
    /// acknowledged.
    ///
    /// - Returns: whether the cursor is valid. A cursor is invalid when the mailbox was deleted,
    ///   when Redis has lost the mailbox or its newest messages, or when messages after the cursor
    ///   are gone. Then nothing is acknowledged, and the next `listen` with this cursor reports
    ///   why.
    /// - Throws: `.invalidArgument`, `.cancelled`, `.connectionLost`, `.notConnected`,
    ///   `.notPermitted`, `.stopped`, `.wrongType`, `.conflict`, `.serverError`.
    @discardableResult
    public func acknowledge(
        _ cursor: Cursor, device: String = Self.defaultDevice
    ) async throws(QueueListenError) -> Bool {
        try await acknowledge(cursor, device: device, requiresDevice: false)
    }

    /// - Parameter requiresDevice: whether a device that the mailbox does not have is refused.
    func acknowledge(_ cursor: Cursor, device: String, requiresDevice: Bool) async throws(QueueListenError) -> Bool {
        try validate(device: device, "acknowledge messages of")
        let acknowledgements = listeners.acknowledgements
        let acknowledgement = ConfirmedAcknowledgements.Acknowledgement(mailbox: name, device: device, cursor: cursor)
        while true {
            let call = acknowledgements.begin()
            defer { acknowledgements.end() }
            let reply = try await run(
                Scripts.listen,
                partition.listenArguments(
                    device, .acknowledges, requiresDevice: requiresDevice, poll: 0, registrationLifetime: 0,
                    cursor: cursor, maxMessages: 0, maxBytes: 1),
                "acknowledge messages of")
            guard try read(reply, "acknowledge messages of").status == .ok else { return false }
            if acknowledgements.confirm(acknowledgement, of: call) { return true }
        }
    }

    func validate(device: String, _ action: String) throws(QueueListenError) {
        do { try MailName.validate(device, "device", maxBytes: 128) } catch { throw error.prefixed(failure(action)) }
    }

    private func check(limit: Int, maxBytes: Int, _ action: String) throws(QueueListenError) {
        guard (1...10_000).contains(limit) else { throw invalid("limit is \(limit), expected 1 to 10,000", action) }
        guard maxBytes >= 1 else { throw invalid("maxBytes is \(maxBytes), expected 1 or more", action) }
    }

    private func invalid(_ fault: String, _ action: String) -> QueueListenError {
        QueueListenError(.invalidArgument, fault).prefixed(failure(action))
    }

    // MARK: Manage

    /// Returns messages without acknowledging them, without registering a device and without
    /// waiting for messages.
    ///
    /// It changes nothing. It takes at most ``PostOfficeConfiguration/callTimeout``. A cancelled
    /// call throws `.cancelled` immediately.
    ///
    /// - Parameters:
    ///   - index: the index after which to read; 0 reads from the first message.
    ///   - limit: the maximum number of messages, 1 to 10,000. One call returns at most 1,000.
    ///   - maxBytes: the maximum number of bytes, from 1. One call returns at most 1 MiB, and one
    ///     message even if it is larger.
    /// - Throws: `.invalidArgument` and the codes of ``inspect()``.
    public func peek(
        after index: Int = 0, limit: Int = 100, maxBytes: Int = 1024 * 1024
    ) async throws(QueueListenError) -> [ReceivedMessage] {
        try check(limit: limit, maxBytes: maxBytes, "read")
        guard index >= 0 else { throw invalid("index is \(index), expected 0 or more", "read") }
        let reply = try await run(
            // An index has 6 bytes. The numbers of the server's Lua are exact for all 6-byte values.
            Scripts.peek,
            [.bytes(partition.target.bytes), .integer(min(index, 1 << 48)), .integer(limit), .integer(maxBytes)], "read"
        )
        return try read(reply, "read").messages
    }

    /// The number of messages in the mailbox, including expired and replaced ones; 0 if it does not
    /// exist.
    ///
    /// Throws the codes of ``inspect()``.
    public var count: Int {
        get async throws(QueueListenError) { try await inspect()?.count ?? 0 }
    }

    /// Deletes the mailbox, its messages and its jobs. Listeners that wait now, and those that return
    /// later with a cursor, receive ``Delivery/Status/reset``. The handlers of jobs that run are
    /// cancelled within a third of ``WorkConfiguration/ttl``.
    ///
    /// It takes at most ``PostOfficeConfiguration/callTimeout``. A cancelled call throws
    /// `.cancelled` immediately; the mailbox may have been deleted nevertheless.
    ///
    /// - Returns: the number of messages that were deleted; `nil` if the mailbox did not exist.
    /// - Throws: the codes of ``inspect()``. If `mayHaveRun` is true, the mailbox may have been
    ///   deleted.
    @discardableResult
    public func delete() async throws(QueueListenError) -> Int? {
        let reply = try await run(
            Scripts.delete, [.bytes(partition.target.bytes)], "delete", also: partition.keys.jobKeys(name))
        guard let parts = reply.array, parts.count == 3, parts[0].string == "ok", let count = parts[1].integer else {
            throw refusal(reply, "delete")
        }
        return parts[2].integer == 1 ? count : nil
    }

    /// Gives the mailbox limits of its own, which override those of all post offices. Creates it if
    /// it does not exist.
    ///
    /// It takes at most ``PostOfficeConfiguration/callTimeout``. A cancelled call throws
    /// `.cancelled` immediately; the limits may have been set nevertheless.
    ///
    /// - Parameter limits: `nil` removes the mailbox's own limits.
    /// - Throws: `.invalidArgument`, `.outOfMemory` and the codes of ``inspect()``. If `mayHaveRun`
    ///   is true, the limits may have been set.
    public func setLimits(_ limits: MailboxLimits?) async throws(QueueListenError) {
        if let limits {
            do { try limits.validate() } catch { throw error.prefixed(failure("set the limits of")) }
        }
        let reply = try await run(
            Scripts.setLimits,
            [.bytes(partition.target.bytes), .bytes(limits?.packed ?? [])], "set the limits of")
        guard reply.array?.first?.string == "ok" else { throw refusal(reply, "set the limits of") }
    }

    // MARK: Scripts

    /// Runs a script on this mailbox.
    ///
    /// - Parameters:
    ///   - action: the verb for error messages, "delete" for example.
    ///   - more: keys beside those of the mailbox's messages.
    func run(
        _ script: RedisScript, _ arguments: [RedisArgument], _ action: String, also more: [String] = []
    ) async throws(QueueListenError) -> RESPValue {
        do {
            return try await office.redis.script(
                script, keys: partition.keys.scriptKeys(name) + more, arguments: arguments,
                timeout: office.configuration.callTimeout)
        } catch { throw QueueListenError(error).prefixed(failure(action)) }
    }

    func refusal(_ reply: RESPValue, _ action: String) -> QueueListenError {
        QueueListenError(refusal: reply, partitions: partition.total).prefixed(failure(action))
    }

    func read(_ reply: RESPValue, _ action: String) throws(QueueListenError) -> ReadReply {
        do { return try ReadReply(reply, partitions: partition.total) } catch {
            throw error.prefixed(failure(action))
        }
    }

    func failure(_ action: String) -> String { "cannot \(action) \"\(name)\"" }
}
