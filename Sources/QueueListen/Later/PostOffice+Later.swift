public import Hiredis

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

// Sends that are due later.
//
// ```swift
// let reminder = try await office.send("your game begins", to: "alice", after: .seconds(600))
// _ = try await office.cancelScheduledSend(reminder.id)
// ```
extension PostOffice {
    /// Sends messages, in this order, to all recipients at a later time: each recipient gets all of
    /// them, or no recipient gets any.
    ///
    /// Redis keeps the messages until then. Any post office of the namespace that runs
    /// (``PostOffice/run()``) carries the send out within milliseconds of its time; while none runs, it is
    /// carried out as soon as one does. It has one effect, whichever processes die meanwhile. The
    /// messages get their indices, and their ``Message/ttl`` begins, when they are sent, so the order
    /// of a mailbox holds. They are stored then even if a mailbox is full, because the send was
    /// confirmed; a mailbox that drops its oldest messages does so with the next send.
    ///
    /// If Redis loses the send in a failover, the post office that has scheduled it schedules it
    /// again, if its process still lives and remembers it (``PostOfficeConfiguration/repairTime``).
    /// A send whose process dies within ``PostOfficeConfiguration/takeOverAfter`` of this call may be
    /// late by half of that time; with more than 16 partitions, in proportion more. A send that
    /// cannot be carried out, because a key of a mailbox holds data of another program for example,
    /// is tried again for 29 days.
    ///
    /// - Parameters:
    ///   - messages: as for the send of now.
    ///   - recipients: as for the send of now.
    ///   - time: when the send is due, by the clock of the Redis server, rounded up to milliseconds:
    ///     from 1970 to 9999. A time in the past is due now.
    ///   - id: identifies the send, apart from the ids of sends of now. While it waits, and for
    ///     ``PostOfficeConfiguration/sendIDLifetime`` afterwards, a call with the same id, messages
    ///     and recipients has no second effect and returns the time of the first call. A call with
    ///     other messages or recipients throws `.conflict`, unless the send was cancelled. 1 to 256
    ///     bytes of UTF-8 without control characters and braces. With `nil` the call generates an id.
    ///   - durability: how durable the recorded send must be before the call returns.
    /// - Returns: the id and the time of the send.
    /// - Throws:
    ///   - `.invalidArgument`, `.outOfMemory`, `.conflict`, `.wrongType`, `.notPermitted`,
    ///     `.notConnected`, `.unsupported`: nothing was scheduled, unless `mayHaveRun` is true.
    ///   - `.tooManyScheduled`: ``PostOfficeConfiguration/maxScheduledSends`` wait already.
    ///   - `.connectionLost`, `.cancelled`, `.stopped`, `.serverError`: if `mayHaveRun` is true, the
    ///     send may be scheduled.
    ///   - `.notDurable`: the send is scheduled, but the durability was not confirmed.
    @discardableResult
    public func send(
        _ messages: [Message], to recipients: [String], at time: Date, id: String? = nil,
        durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        try await schedule(request(messages, recipients), SendTime(time), id: id, durability)
    }

    /// Sends messages, in this order, to all recipients after a delay: each recipient gets all of
    /// them, or no recipient gets any.
    ///
    /// Everything else is as for the send at a time.
    ///
    /// - Parameter delay: from the arrival of the request at Redis, rounded up to milliseconds: 0 to
    ///   3,650 days.
    @discardableResult
    public func send(
        _ messages: [Message], to recipients: [String], after delay: Duration, id: String? = nil,
        durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        try await schedule(request(messages, recipients), SendTime(after: delay), id: id, durability)
    }

    /// Sends a message to all recipients or to none, at a later time.
    ///
    /// Everything else is as for the send of several messages at a time.
    @discardableResult
    public func send(
        _ message: Message, to recipients: String..., at time: Date, id: String? = nil,
        durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        try await send([message], to: recipients, at: time, id: id, durability: durability)
    }

    /// Sends a message to all recipients or to none, after a delay.
    ///
    /// Everything else is as for the send of several messages after a delay.
    @discardableResult
    public func send(
        _ message: Message, to recipients: String..., after delay: Duration, id: String? = nil,
        durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        try await send([message], to: recipients, after: delay, id: id, durability: durability)
    }

    /// Sends a text to all recipients or to none, at a later time.
    ///
    /// Everything else is as for the send of several messages at a time.
    @discardableResult
    public func send(
        _ text: String, to recipients: String..., at time: Date, id: String? = nil,
        durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        try await send([Message(text: text)], to: recipients, at: time, id: id, durability: durability)
    }

    /// Sends a text to all recipients or to none, after a delay.
    ///
    /// Everything else is as for the send of several messages after a delay.
    @discardableResult
    public func send(
        _ text: String, to recipients: String..., after delay: Duration, id: String? = nil,
        durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        try await send([Message(text: text)], to: recipients, after: delay, id: id, durability: durability)
    }

    /// Sends different messages to each recipient at a later time: all of them or none.
    ///
    /// Everything else is as for the send of the same messages to all recipients at a time.
    @discardableResult
    public func send(
        _ messages: [String: [Message]], at time: Date, id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        try await schedule(request(messages), SendTime(time), id: id, durability)
    }

    /// Sends different messages to each recipient after a delay: all of them or none.
    ///
    /// Everything else is as for the send of the same messages to all recipients after a delay.
    @discardableResult
    public func send(
        _ messages: [String: [Message]], after delay: Duration, id: String? = nil, durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        try await schedule(request(messages), SendTime(after: delay), id: id, durability)
    }

    /// Cancels a send that is due later, or a recurring send.
    ///
    /// An occurrence of a recurring send that is due already is still sent to all of its recipients.
    ///
    /// - Returns: whether it is cancelled, and will not be sent. `false`: it is being sent or was sent,
    ///   or there is none with this id.
    /// - Throws: `.invalidArgument`, and the codes of a failed request. If `mayHaveRun` is true, the send
    ///   may be cancelled; a repeated call says so.
    public func cancelScheduledSend(_ id: String) async throws(QueueListenError) -> Bool {
        try MailName.validate(id, "send id", maxBytes: 256)
        return try await laterSender.cancel(id)
    }

    /// Returns the sends that are due later, the next one first.
    ///
    /// One that is being sent at the moment may be among them.
    ///
    /// - Parameter limit: the maximum number of sends, 1 to 10,000.
    /// - Throws: `.invalidArgument`, and the codes of a failed request.
    public func scheduledSends(limit: Int = 100) async throws(QueueListenError) -> [ScheduledSend] {
        guard (1...10_000).contains(limit) else {
            throw QueueListenError(.invalidArgument, "limit is \(limit), expected 1 to 10,000")
        }
        return try await laterSender.list(limit)
    }

    func request(_ messages: [Message], _ recipients: [String]) throws(QueueListenError) -> SendRequest {
        try SendRequest(messages, to: recipients, maxMessageBytes: configuration.maxMessageBytes)
    }

    func request(_ messages: [String: [Message]]) throws(QueueListenError) -> SendRequest {
        try SendRequest(messages, maxMessageBytes: configuration.maxMessageBytes)
    }

    func schedule(
        _ request: SendRequest, _ time: SendTime, id: String?, _ durability: Durability
    ) async throws(QueueListenError) -> ScheduledSend {
        try Self.validate(id, durability)
        do { return try await laterSender.schedule(request, time, id: id, durability) } catch {
            throw Self.described(error, request)
        }
    }
}
