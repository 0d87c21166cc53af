extension Mailbox {
    /// Returns the messages after a cursor as an endless sequence, which waits for messages when it
    /// has none.
    ///
    /// ```swift
    /// for try await event in mailbox.messages(after: cursor) {
    ///     switch event {
    ///     case .message(let message): try await handle(message)
    ///     case .gap: try await reloadState()
    ///     }
    /// }
    /// ```
    ///
    /// Asking for the next message says that the loop has finished with the last one. Finished
    /// messages are acknowledged at the end of each page and about once a second. When a loop ends,
    /// by `break`, by an error or by the death of the process, its last message is delivered again
    /// to the next reader, and so are messages of the same page that it finished with since the
    /// last acknowledgement.
    ///
    /// The sequence continues through every broken connection and every restart of Redis. A
    /// cancelled task throws `.cancelled` from it.
    ///
    /// - Parameters:
    ///   - cursor: as for ``listen(after:device:limit:maxBytes:timeout:)``.
    ///   - device: as for ``listen(after:device:limit:maxBytes:timeout:)``.
    ///   - limit: the maximum number of messages of one page, 1 to 10,000.
    /// - Returns: a sequence that throws `.superseded` when a newer `listen` for the device begins,
    ///   `.cancelled`, `.stopped`, `.invalidArgument`, `.wrongType`, `.notPermitted`, `.conflict`,
    ///   `.serverError`.
    public func messages(
        after cursor: Cursor? = nil, device: String = Self.defaultDevice, limit: Int = 100
    ) -> MailboxMessages {
        MailboxMessages(mailbox: self, device: device, cursor: cursor, limit: limit)
    }
}

/// The messages of a mailbox as an asynchronous sequence: see
/// ``Mailbox/messages(after:device:limit:)``.
///
/// Each iteration begins at the cursor with which the sequence was created.
public struct MailboxMessages: AsyncSequence, Sendable {
    /// A message, or the report that messages may be missing.
    public typealias Element = MailboxEvent
    /// The error of the iterator.
    public typealias Failure = QueueListenError

    let mailbox: Mailbox
    let device: String
    let cursor: Cursor?
    let limit: Int

    /// Creates an iterator, which begins at the sequence's cursor.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(reader: MailboxReader(mailbox, device: device, after: cursor, limit: limit))
    }

    /// Reads a mailbox message by message.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var reader: MailboxReader

        /// Acknowledges if necessary, and returns the next event; waits until there is one.
        ///
        /// - Throws: the codes that ``Mailbox/messages(after:device:limit:)`` lists.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(QueueListenError) -> MailboxEvent? {
            if let message = try await reader.nextInPage() { return .message(message) }
            while true {
                let page = try await reader.nextPage()
                if let event = try reader.receive(page) { return event }
            }
        }

        /// Acknowledges if necessary, and returns the next event; waits until there is one.
        ///
        /// - Throws: the codes that ``Mailbox/messages(after:device:limit:)`` lists.
        public mutating func next() async throws(QueueListenError) -> MailboxEvent? {
            try await next(isolation: #isolation)
        }
    }
}

/// An element of ``Mailbox/messages(after:device:limit:)``.
public enum MailboxEvent: Sendable {
    /// The next message.
    case message(ReceivedMessage)
    /// Messages are missing here, or some will be delivered a second time. A reader that derives a
    /// state from the messages reloads that state.
    case gap(MailboxGap)
}

/// The reason why messages may be missing.
public enum MailboxGap: Sendable, Hashable {
    /// The mailbox was lost or deleted. See ``Delivery/Status/reset``.
    case reset
    /// Redis has lost the end of the mailbox. See ``Delivery/Status/forked``.
    case forked
    /// Messages before the one with the index `first` are gone. See
    /// ``Delivery/Status/truncated(first:)``.
    case truncated(first: Int)
}
