// What each device has received lately, so that a failover that loses it is no gap.
//
// A promoted replica may lack the end of a mailbox that a reader has seen. Nothing of that is lost to the reader. It reads
// again from a position that the replica has, and skips what it has received: the messages that the replica has, and the
// copies that their senders send again, which have the same ids.
import CoordinationBase
import DequeModule

/// The messages that the devices of this process have received lately, in the mailboxes of one partition.
struct ReadTrails {
    private struct Key: Hashable {
        var mailbox: ByteName
        var device: ByteName

        init(_ request: ListenRequest) {
            (mailbox, device) = (ByteName(request.mailbox), ByteName(request.device))
        }
    }

    private struct Entry {
        var serial: UInt64
        var cursor: Cursor
        var id: String
    }

    /// The messages of a device, in order.
    private struct Trail {
        /// The position before the first message.
        var start: Cursor
        /// The position after the last message and what was skipped behind it.
        var end: Cursor
        var entries = Deque<Entry>()

        /// Whether the device has received a position.
        func contains(_ cursor: Cursor) -> Bool {
            start.epoch == cursor.epoch && start.index < cursor.index
                && (end == cursor || entries.contains { $0.cursor == cursor })
        }
    }

    /// Messages, wherever they are in the mailbox.
    private struct Identities {
        private var ids: Set<ByteName> = []
        /// Of messages without an id.
        private var tags: Set<UInt64> = []

        mutating func insert(_ entry: Entry) {
            if entry.id.isEmpty { tags.insert(entry.cursor.tag) } else { ids.insert(ByteName(entry.id)) }
        }

        func contains(_ message: ReceivedMessage) -> Bool {
            message.id.isEmpty ? tags.contains(message.cursor.tag) : ids.contains(ByteName(message.id))
        }
    }

    /// What a device has received before it reads again.
    private struct Received {
        var messages: Identities
        /// The trail that it has left, and what it had received before: a call that does not return its new position is
        /// followed by one with the old position.
        var former: Trail
        var before: Identities
    }

    /// The time for which messages are remembered: longer than replicas usually lag behind.
    static let time = Duration.seconds(30)
    /// The time after a new connection in which nothing is forgotten, and for which a device skips what it has received.
    static let timeAfterReconnecting = Duration.seconds(60)
    /// The maximum number of messages that are remembered, in all mailboxes of the partition.
    static let capacity = 1 << 16

    private var trails: [Key: Trail] = [:]
    /// The messages of all trails, the oldest first.
    private var order = Deque<(key: Key, serial: UInt64, at: Duration)>()
    private var lastSerial: UInt64 = 0
    private var received: [Key: Received] = [:]
    private var receivedUntil = Duration.zero
    private var keptUntil = Duration.zero

    /// The connection is new: it may lead to a server that lacks the last messages.
    mutating func reconnected(now: Duration) { keptUntil = now + Self.timeAfterReconnecting }

    /// Takes a reply over that a call returns: removes what its device has received, and remembers the rest. After a gap
    /// the device may begin anew, so nothing before it is skipped.
    mutating func receive(_ reply: inout ReadReply, of request: ListenRequest, now: Duration) {
        let key = Key(request)
        switch reply.status {
        case .reset, .forked, .truncated:
            received[key] = nil
            trails[key] = nil
        case .ok where !reply.isEmpty: take(&reply, key, now)
        case .ok, .superseded: break
        }
    }

    private mutating func take(_ reply: inout ReadReply, _ key: Key, _ now: Duration) {
        if !received.isEmpty, receivedUntil < now { received = [:] }
        follow(reply.position, key)
        for message in reply.messages {
            lastSerial += 1
            order.append((key, lastSerial, now))
            trails[key]!.entries.append(Entry(serial: lastSerial, cursor: message.cursor, id: message.id))
        }
        trails[key]!.end = reply.end
        if let received = received[key] {
            let count = reply.messages.count
            reply.messages.removeAll(where: received.messages.contains)
            reply.skipped += count - reply.messages.count
        }
        forget(now)
    }

    /// Lets a trail end at the position from which its device reads. A device that goes back receives again what follows.
    private mutating func follow(_ position: Cursor, _ key: Key) {
        guard let trail = trails[key] else {
            trails[key] = Trail(start: position, end: position)
            return
        }
        if trail.end == position { return }
        received[key] = nil
        let count = trail.entries.count { $0.cursor.index <= position.index }
        let isOnTrail = position == trail.start || count > 0 && trail.entries[count - 1].cursor == position
        if isOnTrail {
            trails[key]!.entries.removeLast(trail.entries.count - count)
            trails[key]!.end = position
        } else {
            trails[key] = Trail(start: position, end: position)
        }
    }

    /// Redis does not have the position of a call.
    ///
    /// - Parameter first: the position before the first message that Redis has.
    /// - Returns: an earlier position, from which the call can read again; `nil` if none is known.
    mutating func rewind(_ request: ListenRequest, to first: Cursor, now: Duration) -> Cursor? {
        let key = Key(request)
        guard let cursor = request.cursor, first.epoch == cursor.epoch, first.index < cursor.index else { return nil }
        let trail: Trail
        let before: Identities
        if let current = trails[key], current.contains(cursor) {
            (trail, before) = (current, received[key]?.messages ?? Identities())
        } else if let earlier = received[key], earlier.former.contains(cursor) {
            (trail, before) = (earlier.former, earlier.before)
        } else {
            return nil
        }
        let start = first.index > trail.start.index ? first : trail.start
        // What Redis has deleted must be what the device has received.
        if trail.entries.contains(where: { $0.cursor.index == start.index && $0.cursor != start }) { return nil }
        var messages = before
        // Later messages were returned too, but the caller has not taken them over: it passes the position before them.
        for entry in trail.entries where entry.cursor.index <= cursor.index { messages.insert(entry) }
        received[key] = Received(messages: messages, former: trail, before: before)
        receivedUntil = now + Self.timeAfterReconnecting
        trails[key] = Trail(start: start, end: start)
        return start
    }

    private mutating func forget(_ now: Duration) {
        while let oldest = order.first,
            order.count > Self.capacity || oldest.at + Self.time < now && keptUntil < now
        {
            order.removeFirst()
            guard let first = trails[oldest.key]?.entries.first, first.serial == oldest.serial else { continue }
            if trails[oldest.key]!.entries.count == 1 {
                trails[oldest.key] = nil
            } else {
                trails[oldest.key]!.start = first.cursor
                trails[oldest.key]!.entries.removeFirst()
            }
        }
    }
}
