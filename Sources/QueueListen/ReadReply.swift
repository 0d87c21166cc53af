import Hiredis

/// The reply of the scripts `listen` and `peek`.
struct ReadReply: Sendable {
    enum Status: String {
        case ok, reset, forked, truncated, superseded
    }
    var status: Status
    /// The position before the first message. If the status reports a loss, the position from which
    /// reading can restart.
    var position: Cursor
    var messages: [ReceivedMessage] = []
    /// The number of expired and replaced messages.
    var skipped = 0
    /// The position after the last message, including skipped ones.
    var end: Cursor

    /// - Parameter partitions: the number of partitions with which the post office is configured.
    /// - Throws: `.conflict`, `.wrongType`, `.serverError`.
    init(_ reply: RESPValue, partitions: Int) throws(QueueListenError) {
        var reader = ByteReader(reply.array?.dropFirst().first?.bytes ?? [])
        guard let parts = reply.array, let status = parts.first?.string.flatMap({ Status(rawValue: $0) }),
            let position = reader.cursor(), let now = reader.number()
        else {
            switch reply.array?.first?.string {
            case "unknown":
                throw QueueListenError(
                    .unknownDevice, "the mailbox does not have this device: it was forgotten, or was never registered")
            default: throw QueueListenError(refusal: reply, partitions: partitions)
            }
        }
        self.status = status
        self.position = position
        end = position
        for at in stride(from: 2, to: parts.count, by: 2) {
            guard at + 1 < parts.count, let head = parts[at].bytes, let body = parts[at + 1].bytes,
                let stored = StoredMessage(head: head, body: body)
            else {
                throw QueueListenError(
                    .wrongType,
                    "the mailbox's list contains an element that is not a message: another program has changed the key")
            }
            add(stored, now: now)
        }
    }

    /// Appends a message, or counts it as skipped.
    ///
    /// - Parameter now: the time by the server's clock, in milliseconds since 1970.
    mutating func add(_ stored: StoredMessage, now: Int) {
        if stored.isEmpty || stored.expires > 0 && stored.expires <= now {
            skipped += 1
        } else {
            messages.append(ReceivedMessage(stored, epoch: position.epoch))
        }
        end = Cursor(epoch: position.epoch, index: stored.index, tag: stored.tag)
    }

    init(_ status: Status, position: Cursor, end: Cursor? = nil) {
        self.status = status
        self.position = position
        self.end = end ?? position
    }

    /// Whether there is nothing to deliver: a waiting call continues to wait.
    var isEmpty: Bool { status == .ok && end.index == position.index }

    var delivery: Delivery {
        switch status {
        case .ok where isEmpty: Delivery(.timedOut, cursor: position)
        case .ok: Delivery(.messages(messages), cursor: end, skipped: skipped)
        case .reset: Delivery(.reset, cursor: position)
        case .forked: Delivery(.forked, cursor: position)
        case .truncated: Delivery(.truncated(first: position.index + 1), cursor: position)
        case .superseded: Delivery(.superseded, cursor: position)
        }
    }
}
