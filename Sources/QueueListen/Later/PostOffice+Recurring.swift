public import Hiredis

// Sends that recur.
//
// ```swift
// let berlin = TimeZone(identifier: "Europe/Berlin")!
// try await office.send("count the day", to: "reports", recurring: .cron("0 3 * * *", in: berlin), id: "nightly")
// try await office.send("look", to: "cleaner", recurring: .every(.seconds(60)), id: "cleanup")
// ```
extension PostOffice {
    /// Sends messages, in this order, to all recipients again and again.
    ///
    /// Declare a recurring send when the program starts, in each of its processes: a call with the same
    /// id, messages, recipients and recurrence changes nothing. A call with the same id and anything
    /// else replaces the recurring send. If processes of two versions start, the last call counts.
    ///
    /// Each occurrence is sent as a send at a time is (``send(_:to:at:id:durability:)-(_,[String],_,_,_)``), once,
    /// whichever processes die meanwhile, by any running post office of the namespace. Its messages have
    /// ids of their own: `ID@TIME/NUMBER`, with the time at which it was due in milliseconds since
    /// 1970. The next one follows from the server's clock and is recorded when one is sent, so occurrences
    /// do not pile up while no post office runs.
    ///
    /// - Parameters:
    ///   - messages: as for the send of now.
    ///   - recipients: as for the send of now.
    ///   - recurrence: when it is due.
    ///   - id: identifies the recurring send, among the sends that are due later. 1 to 256 bytes of
    ///     UTF-8 without control characters and braces.
    ///   - missed: what happens to an occurrence for which no post office ran in time.
    ///   - durability: how durable the record must be before the call returns.
    /// - Returns: the id and the next time. It recurs until ``cancelScheduledSend(_:)``.
    /// - Throws: as for the send at a time. `.conflict`: the id is that of a send at a time.
    @discardableResult
    public func send(
        _ messages: [Message], to recipients: [String], recurring recurrence: Recurrence, id: String,
        missed: MissedOccurrence = .sendOnce, durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        let rule = try RecurrenceRule(recurrence, missed)
        return try await schedule(request(messages, recipients), .recurring(rule), id: id, durability)
    }

    /// Sends a message to all recipients again and again.
    ///
    /// Everything else is as for the recurring send of several messages.
    @discardableResult
    public func send(
        _ message: Message, to recipients: String..., recurring recurrence: Recurrence, id: String,
        missed: MissedOccurrence = .sendOnce, durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        try await send(
            [message], to: recipients, recurring: recurrence, id: id, missed: missed, durability: durability)
    }

    /// Sends a text to all recipients again and again.
    ///
    /// Everything else is as for the recurring send of several messages.
    @discardableResult
    public func send(
        _ text: String, to recipients: String..., recurring recurrence: Recurrence, id: String,
        missed: MissedOccurrence = .sendOnce, durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        try await send(
            [Message(text: text)], to: recipients, recurring: recurrence, id: id, missed: missed,
            durability: durability)
    }

    /// Sends different messages to each recipient again and again.
    ///
    /// Everything else is as for the recurring send of the same messages to all recipients.
    @discardableResult
    public func send(
        _ messages: [String: [Message]], recurring recurrence: Recurrence, id: String,
        missed: MissedOccurrence = .sendOnce, durability: Durability = .memory
    ) async throws(QueueListenError) -> ScheduledSend {
        let rule = try RecurrenceRule(recurrence, missed)
        return try await schedule(request(messages), .recurring(rule), id: id, durability)
    }
}
