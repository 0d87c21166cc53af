// What a process hears on its channel of the mailboxes that it listens to.

/// That something has happened to a mailbox. A class, so that a poll that keeps one is no larger for it.
final class MailHint: Sendable {
    /// How a mailbox has grown.
    struct Growth: Sendable {
        /// Behind what was the last message before.
        var start: Cursor
        /// Behind what is the last one now.
        var end: Cursor
        /// What came in between, as it lies in the list; nothing when it is too large to be brought along.
        var elements: [[UInt8]]
    }

    let mailbox: String
    /// `nil`: it is to be read, whatever is known of it.
    let growth: Growth?

    init(mailbox: String, growth: Growth?) { (self.mailbox, self.growth) = (mailbox, growth) }

    /// What a script publishes: for each mailbox `<Hc0Hc0` in the words of Lua's struct library, its name and its growth:
    /// nothing, or `<c8I6c8I6c8`, the epoch, index and tag of the start and of the end, then the elements, each `<Hc0`. What
    /// has no such form is passed over from there on: hints are never needed.
    static func all(in bytes: [UInt8]) -> [MailHint] {
        var rest = Words(rest: bytes[...])
        var hints: [MailHint] = []
        while let name = rest.word(), let growth = rest.word() {
            hints.append(MailHint(mailbox: String(decoding: name, as: UTF8.self), growth: Growth(growth)))
        }
        return hints
    }

    fileprivate struct Words {
        var rest: ArraySlice<UInt8>

        mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }

        mutating func number(_ size: Int) -> Int? {
            bytes(size)?.reversed().reduce(0) { $0 << 8 | Int($1) }
        }

        mutating func word() -> ArraySlice<UInt8>? { number(2).flatMap { bytes($0) } }

        mutating func mark() -> UInt64? { bytes(8).flatMap { UInt64(mark: $0) } }
    }
}

extension MailHint.Growth {
    fileprivate init?(_ bytes: ArraySlice<UInt8>) {
        var rest = MailHint.Words(rest: bytes)
        guard let epoch = rest.mark(), let first = rest.number(6), let firstTag = rest.mark(),
            let last = rest.number(6),
            let lastTag = rest.mark()
        else { return nil }
        start = Cursor(epoch: epoch, index: first, tag: firstTag)
        end = Cursor(epoch: epoch, index: last, tag: lastTag)
        elements = []
        while let element = rest.word() { elements.append(Array(element)) }
    }

    /// What a read would have brought to a poll that waits where this begins; `nil` when it waits elsewhere, or must read.
    ///
    /// - Parameter isFresh: it has just come. Otherwise what has a time to live may be over by now.
    func reply(to wish: Poll.Wish, isFresh: Bool) -> ReadReply? {
        guard wish.cursor == start, !elements.isEmpty, elements.count == end.index - start.index,
            elements.count <= wish.most,
            elements.count == 1 || elements.reduce(0, { $0 + $1.count }) <= wish.maxBytes
        else { return nil }
        var reply = ReadReply(.ok, position: start)
        for element in elements {
            guard let stored = StoredMessage(element), isFresh || stored.expires == 0 else { return nil }
            reply.add(stored, now: stored.sent)
        }
        return reply.end == end ? reply : nil
    }
}
