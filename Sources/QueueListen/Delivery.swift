/// The result of a `listen`.
///
/// ```swift
/// let delivery = try await mailbox.listen(after: cursor)
/// switch delivery.status {
/// case .messages(let messages): messages.forEach(handle)
/// case .timedOut: break
/// case .reset, .forked, .truncated: try await reloadState()
/// case .superseded: return
/// }
/// cursor = delivery.cursor      // acknowledged by the next listen
/// ```
public struct Delivery: Sendable {
    /// The outcome of a `listen`. `reset`, `forked` and `truncated` report that messages were lost.
    public enum Status: Sendable {
        /// Messages in order. No message after the passed cursor is missing except the
        /// ``Delivery/skipped`` ones.
        case messages([ReceivedMessage])
        /// No message arrived before the timeout.
        case timedOut
        /// The cursor, or the position of a device without a cursor, belongs to an earlier mailbox of
        /// this name, which Redis has lost or which was deleted. The messages that it contained and
        /// that were not read are lost.
        case reset
        /// Redis has lost the end of the mailbox that the cursor has seen, and other messages may
        /// have taken its place. Some messages may be delivered a second time, under the same ids.
        ///
        /// It is not returned while this process remembers what the device has received: then the call
        /// skips the messages that were received before, and nothing is missing.
        case forked
        /// Messages after the cursor are gone because the mailbox was full, because they were too
        /// old, or because they were deleted. `first` is the index of the first message that is
        /// left.
        case truncated(first: Int)
        /// A newer `listen` for the same device has begun, in this process or another one.
        case superseded
    }

    /// The outcome of the `listen`.
    public let status: Status
    /// The cursor to pass to the next `listen`, which acknowledges all messages up to it.
    ///
    /// After `reset`, `forked` and `truncated` it is the position before the first message that is
    /// left.
    public let cursor: Cursor
    /// The number of messages up to ``cursor`` that were skipped: expired ones, and ones that were
    /// replaced by a later message with the same collapse key. After a failover also copies of messages
    /// that this device has received in this process.
    public let skipped: Int

    init(_ status: Status, cursor: Cursor, skipped: Int = 0) {
        self.status = status
        self.cursor = cursor
        self.skipped = skipped
    }

    /// The messages of the status ``Status/messages(_:)``; empty for any other status.
    public var messages: [ReceivedMessage] {
        if case .messages(let messages) = status { messages } else { [] }
    }
}
