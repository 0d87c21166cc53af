// What listening brings.
import Hiredis

/// The answer to a `listen`.
///
/// ```swift
/// let delivery = try await mailbox.listen(after: cursor)
/// switch delivery.status {
/// case .messages(let messages): messages.forEach(handle)
/// case .timedOut: break
/// case .reset, .forked, .truncated: try await readEverythingElseAnew()
/// case .superseded: return
/// }
/// cursor = delivery.cursor      // acknowledges, with the next listen
/// ```
public struct Delivery: Sendable {
    /// What has happened. Only `messages` means that nothing has.
    public enum Status: Sendable {
        /// Messages in order, without a gap behind the cursor that was passed but for ``Delivery/skipped`` ones.
        case messages([ReceivedMessage])
        /// The time was up, and there was nothing.
        case timedOut
        /// The mailbox is not the one that the cursor is of: Redis lost it, or it was deleted, and it was made anew. What was
        /// in it and not read is gone.
        case reset
        /// The mailbox does not have what the cursor has seen: Redis lost its end, perhaps other messages are in its place
        /// now. Some may come a second time, under the same ids.
        case forked
        /// Messages behind the cursor are gone, the first one that is there is this: the mailbox was full, or they were too
        /// old, or someone deleted them.
        case truncated(first: Int)
        /// A newer `listen` of the same device has begun, here or elsewhere.
        case superseded
    }

    public let status: Status
    /// To be passed to the next `listen`, which acknowledges all up to here. After `reset`, `forked` and `truncated` it is
    /// the place before the first message that is there.
    public let cursor: Cursor
    /// How many messages were passed over up to ``cursor``: expired ones, and ones that a later message with their collapse
    /// key has replaced.
    public let skipped: Int

    init(_ status: Status, cursor: Cursor, skipped: Int = 0) {
        self.status = status
        self.cursor = cursor
        self.skipped = skipped
    }

    /// The messages; none with any other status.
    public var messages: [ReceivedMessage] {
        if case .messages(let messages) = status { messages } else { [] }
    }
}

/// What `listen`'s and `peek`'s scripts answer.
struct ReadReply: Sendable {
    enum Status: String {
        case ok, reset, forked, truncated, superseded
    }
    var status: Status
    /// Where the reading began, or can begin anew.
    var position: Cursor
    var messages: [ReceivedMessage] = []
    var skipped = 0
    /// Behind everything that was read, also what was passed over.
    var end: Cursor

    init(_ reply: RESPValue, partitions: Int) throws(QueueListenError) {
        guard let parts = reply.array, parts.count >= 5, let status = parts[0].string.flatMap({ Status(rawValue: $0) }),
            let epoch = parts[1].bytes.flatMap({ UInt64(mark: $0) }), let index = parts[2].integer,
            let tag = parts[3].bytes.flatMap({ UInt64(mark: $0) }), let now = parts[4].integer
        else {
            if reply.array?.first?.string == "devices" {
                throw QueueListenError(.conflict, "the mailbox has 64 devices already")
            }
            throw QueueListenError(refusal: reply, partitions: partitions)
        }
        self.status = status
        position = Cursor(epoch: epoch, index: index, tag: tag)
        end = position
        for part in parts.dropFirst(5) {
            guard let stored = part.bytes.flatMap({ StoredMessage($0) }) else {
                throw QueueListenError(.wrongType, "the mailbox's list holds something else than messages")
            }
            add(stored, now: now)
        }
    }

    /// - Parameter now: milliseconds since 1970, by the server's clock.
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

    /// Nothing to tell: whoever waits goes on waiting.
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
