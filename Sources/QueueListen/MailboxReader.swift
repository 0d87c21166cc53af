// The reading by pages that the asynchronous sequence and the receiver share.
import CoordinationBase

/// Reads a mailbox page by page, and acknowledges the messages that its user has finished with.
struct MailboxReader: Sendable {
    private let mailbox: Mailbox
    private let device: String
    private let limit: Int
    private let clock: MonotonicClock
    /// The messages of the page that were not returned yet, the first one last.
    private var page: [ReceivedMessage] = []
    /// The position after the page, or the position where reading begins.
    private var end: Cursor?
    /// The position after the message that was returned last.
    private var current: Cursor?
    private var acknowledgedAt: Duration

    private static let acknowledgeInterval = Duration.seconds(1)

    init(_ mailbox: Mailbox, device: String, after cursor: Cursor?, limit: Int) {
        (self.mailbox, self.device, self.limit) = (mailbox, device, limit)
        clock = mailbox.office.clock
        end = cursor
        acknowledgedAt = clock.now()
    }

    /// Returns the next message of the page; `nil` at its end.
    ///
    /// The message returned before is finished with. It is acknowledged, with those before it, if
    /// the last acknowledgement is a second old: a slow user does not wait until the end of the
    /// page.
    mutating func nextInPage() async throws(QueueListenError) -> ReceivedMessage? {
        guard let message = page.popLast() else { return nil }
        if let current, clock.now() - acknowledgedAt >= Self.acknowledgeInterval {
            acknowledgedAt = clock.now()
            do {
                try await mailbox.acknowledge(current, device: device)
            } catch {
                // The next acknowledgement includes this one.
                guard error.code == .connectionLost || error.code == .notConnected else { throw error }
            }
        }
        current = message.cursor
        return message
    }

    /// Waits for the next page, and acknowledges the last one.
    func nextPage() async throws(QueueListenError) -> Delivery {
        try await mailbox.listen(after: end, device: device, limit: limit)
    }

    /// Takes a page over, and returns its first message or the gap that it reports; `nil` if it has
    /// neither.
    ///
    /// - Throws: `.superseded`.
    mutating func receive(_ delivery: Delivery) throws(QueueListenError) -> MailboxEvent? {
        acknowledgedAt = clock.now()
        let gap: MailboxGap
        switch delivery.status {
        case .messages(let messages):
            end = delivery.cursor
            page = messages.reversed()
            guard let message = page.popLast() else { return nil }
            current = message.cursor
            return .message(message)
        case .timedOut: return nil
        case .superseded:
            throw QueueListenError(
                .superseded,
                "a newer reader listens to \"\(mailbox.name)\" as the device \"\(device)\": give each reader its own device"
            )
        case .reset: gap = .reset
        case .forked: gap = .forked
        case .truncated(let first): gap = .truncated(first: first)
        }
        end = delivery.cursor
        return .gap(gap)
    }
}
