// Notifications on a process's channel about the mailboxes that it listens to.

/// The notification that a mailbox has changed.
///
/// A class, so that a call that keeps a hint is not larger for it.
final class MailHint: Sendable {
    /// The growth of a mailbox.
    struct Growth: Sendable {
        /// The position after the previous last message.
        var start: Cursor
        /// The position after the new last message.
        var end: Cursor
        /// The list elements of the messages in between; empty if they are too large for a hint.
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
    /// this form, because hints are never required.
    static func decode(_ bytes: [UInt8]) -> [MailHint] {
        var reader = ByteReader(rest: bytes[...])
        var hints: [MailHint] = []
        while let name = reader.word(), let growth = reader.word() {
            hints.append(MailHint(mailbox: String(decoding: name, as: UTF8.self), growth: Growth(growth)))
        }
        return hints
    }

    fileprivate struct ByteReader {
        var rest: ArraySlice<UInt8>

        mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }

        /// Little-endian.
        mutating func number(size: Int) -> Int? {
            bytes(size)?.reversed().reduce(0) { $0 << 8 | Int($1) }
        }

        mutating func word() -> ArraySlice<UInt8>? { number(size: 2).flatMap { bytes($0) } }

        /// An epoch or a tag.
        mutating func uint64() -> UInt64? { bytes(8).flatMap { UInt64(bigEndianBytes: $0) } }
    }
}

extension MailHint.Growth {
    fileprivate init?(_ bytes: ArraySlice<UInt8>) {
        var reader = MailHint.ByteReader(rest: bytes)
        guard let epoch = reader.uint64(), let startIndex = reader.number(size: 6), let startTag = reader.uint64(),
            let endIndex = reader.number(size: 6), let endTag = reader.uint64()
        else { return nil }
        start = Cursor(epoch: epoch, index: startIndex, tag: startTag)
        end = Cursor(epoch: epoch, index: endIndex, tag: endTag)
        elements = []
        while let element = reader.word() { elements.append(Array(element)) }
    }

    /// The reply that a read would have returned to a call that waits at `start`; `nil` if the call
    /// waits elsewhere or must read.
    ///
    /// - Parameter isFresh: whether the hint has just arrived. Otherwise a message with a time to
    ///   live may have expired.
    func reply(to request: ListenRequest, isFresh: Bool) -> ReadReply? {
        guard request.cursor == start, !elements.isEmpty, elements.count == end.index - start.index,
            elements.count <= request.maxMessages,
            elements.count == 1 || elements.reduce(0, { $0 + $1.count }) <= request.maxBytes
        else { return nil }
        var reply = ReadReply(.ok, position: start)
        for element in elements {
            guard let stored = StoredMessage(element), isFresh || stored.expires == 0 else { return nil }
            reply.add(stored, now: stored.sent)
        }
        return reply.end == end ? reply : nil
    }
}
