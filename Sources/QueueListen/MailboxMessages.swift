// A mailbox as an asynchronous sequence.

/// What a reader of a mailbox sees, in order.
public enum MailboxEvent: Sendable {
    case message(ReceivedMessage)
    /// Messages are missing here, or will come a second time. Whoever keeps a state by them reads it anew.
    case gap(MailboxGap)
}

/// Why messages may be missing.
public enum MailboxGap: Sendable, Hashable {
    /// See ``Delivery/Status/reset``.
    case reset
    /// See ``Delivery/Status/forked``.
    case forked
    /// See ``Delivery/Status/truncated(first:)``.
    case truncated(first: Int)
}

extension Mailbox {
    /// The messages, for ever.
    ///
    /// ```swift
    /// for try await event in mailbox.messages(after: cursor) {
    ///     switch event {
    ///     case .message(let message): try await handle(message)
    ///     case .gap: try await readEverythingElseAnew()
    ///     }
    /// }
    /// ```
    ///
    /// Asking for the next one says that the last one is done: what the loop has finished with is acknowledged, at the end
    /// of each page and about once a second. A loop that ends, by `break`, an error or the death of the process, leaves
    /// its last message, and the page's others that it has finished within that second, to come again.
    ///
    /// It goes on through every break of the connection and every restart of Redis.
    ///
    /// - Parameters:
    ///   - cursor: as for ``listen(after:device:limit:maxBytes:timeout:)``.
    ///   - limit: most messages of one page, 1 to 10,000.
    /// - Returns: a sequence that throws `.superseded` when a newer poll of the device begins elsewhere, `.cancelled`,
    ///   `.stopped`, `.invalidArgument`, `.wrongType`, `.notPermitted`.
    public func messages(
        after cursor: Cursor? = nil, device: String = Self.defaultDevice, limit: Int = 100
    ) -> MailboxMessages {
        MailboxMessages(mailbox: self, device: device, cursor: cursor, limit: limit)
    }
}

/// See ``Mailbox/messages(after:device:limit:)``. Each loop over it begins at the same place.
public struct MailboxMessages: AsyncSequence, Sendable {
    public typealias Element = MailboxEvent

    let mailbox: Mailbox
    let device: String
    let cursor: Cursor?
    let limit: Int

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    public struct AsyncIterator: AsyncIteratorProtocol {
        private let source: MailboxMessages
        /// The page, first message last.
        private var page: [ReceivedMessage] = []
        /// Behind the page, or where to begin.
        private var end: Cursor?
        /// Behind the message that the loop is at.
        private var current: Cursor?
        private var acknowledgedAt = ContinuousClock.now

        private static let acknowledgeInterval = Duration.seconds(1)

        init(_ source: MailboxMessages) {
            self.source = source
            end = source.cursor
        }

        public mutating func next() async throws -> MailboxEvent? {
            if let message = page.popLast() {
                try await acknowledge()
                current = message.cursor
                return .message(message)
            }
            while true {
                let delivery = try await source.mailbox.listen(after: end, device: source.device, limit: source.limit)
                acknowledgedAt = .now
                let gap: MailboxGap
                switch delivery.status {
                case .messages(let messages):
                    end = delivery.cursor
                    page = messages.reversed()
                    guard let message = page.popLast() else { continue }
                    current = message.cursor
                    return .message(message)
                case .timedOut: continue
                case .superseded:
                    throw QueueListenError(
                        .superseded,
                        "someone else listens to \"\(source.mailbox.name)\" as the device \"\(source.device)\"")
                case .reset: gap = .reset
                case .forked: gap = .forked
                case .truncated(let first): gap = .truncated(first: first)
                }
                end = delivery.cursor
                return .gap(gap)
            }
        }

        /// A slow loop does not wait for the end of its page.
        private mutating func acknowledge() async throws {
            guard let current, .now - acknowledgedAt >= Self.acknowledgeInterval else { return }
            acknowledgedAt = .now
            do {
                try await source.mailbox.acknowledge(current, device: source.device)
            } catch {
                // What did not get through, the next one says too.
                guard error.code == .connectionLost || error.code == .notConnected else { throw error }
            }
        }
    }
}
