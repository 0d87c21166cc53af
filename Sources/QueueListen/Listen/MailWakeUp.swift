// Notifications on a process's channel about the mailboxes that it listens to.

/// The notification that a mailbox has changed.
///
/// A class, so that a call that keeps a wake-up is not larger for it.
final class MailWakeUp: Sendable {
    /// The growth of a mailbox.
    struct Growth: Sendable {
        /// The position after the previous last message.
        var start: Cursor
        /// The position after the new last message.
        var end: Cursor
        /// The list elements of the messages in between, two for each; empty if they are too large
        /// for a wake-up.
        var elements: [[UInt8]]
    }

    let mailbox: String
    /// `nil`: the mailbox must be read, whatever is known about it.
    let growth: Growth?

    init(mailbox: String, growth: Growth?) { (self.mailbox, self.growth) = (mailbox, growth) }

    /// Decodes a text that a script has published.
    ///
    /// For each mailbox `<Hc0Hc0` in the notation of Lua's struct library: its name and its growth.
    /// The growth is empty, or `<c8I6c8I6c8`, the epoch and the index and tag of start and end,
    /// followed by the elements, each `<Hc0`. Decoding ends at the first bytes that do not have
    /// this form, because wake-ups are never required.
    static func decode(_ bytes: [UInt8]) -> [MailWakeUp] {
        var reader = ByteReader(bytes)
        var wakeUps: [MailWakeUp] = []
        while let name = reader.word(), let growth = reader.word() {
            wakeUps.append(MailWakeUp(mailbox: String(decoding: name, as: UTF8.self), growth: Growth(growth)))
        }
        return wakeUps
    }
}

extension MailWakeUp.Growth {
    fileprivate init?(_ bytes: ArraySlice<UInt8>) {
        var reader = ByteReader(bytes)
        guard let epoch = reader.uint64(), let startIndex = reader.integer(size: 6), let startTag = reader.uint64(),
            let endIndex = reader.integer(size: 6), let endTag = reader.uint64()
        else { return nil }
        start = Cursor(epoch: epoch, index: startIndex, tag: startTag)
        end = Cursor(epoch: epoch, index: endIndex, tag: endTag)
        elements = []
        while let element = reader.word() { elements.append(Array(element)) }
    }

    /// The reply that a read would have returned to a call that waits at `start`; `nil` if the call
    /// waits elsewhere or must read.
    ///
    /// - Parameter isFresh: whether the wake-up has just arrived. Otherwise a message with a time to
    ///   live may have expired.
    func reply(to request: ListenRequest, isFresh: Bool) -> ReadReply? {
        let count = end.index - start.index
        guard request.cursor == start, !elements.isEmpty, elements.count == 2 * count, count <= request.maxMessages,
            count == 1 || elements.reduce(0, { $0 + $1.count }) <= request.maxBytes
        else { return nil }
        var reply = ReadReply(.ok, position: start)
        for at in stride(from: 0, to: elements.count, by: 2) {
            guard let stored = StoredMessage(head: elements[at], body: elements[at + 1]),
                isFresh || stored.expires == 0
            else { return nil }
            reply.add(stored, now: stored.sent)
        }
        return reply.end == end ? reply : nil
    }
}
