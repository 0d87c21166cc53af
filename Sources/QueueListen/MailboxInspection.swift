// What is in a mailbox, for people and tools.
#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif
import Hiredis

/// A mailbox as it was at a moment.
public struct MailboxInspection: Sendable, Hashable {
    /// Messages that wait, expired and replaced ones included.
    public let count: Int
    /// Bytes of them in Redis, Redis's own overhead not counted.
    public let bytes: Int
    /// The index of the first that waits, or that the next will have.
    public let first: Int
    /// The index of the last that was ever sent; 0 when none was.
    public let last: Int
    public let devices: [MailboxDevice]
    /// How many processes want to be woken.
    public let listeningProcesses: Int
    /// Limits of its own, if it has any.
    public let limits: MailboxLimits?
    /// When it is deleted if nobody uses it.
    public let ttl: Duration?
}

/// A device of a mailbox.
public struct MailboxDevice: Sendable, Hashable {
    public let name: String
    /// What it has proven to have.
    public let acknowledged: Cursor
    /// When its last `listen` began, by Redis's clock.
    public let lastSeen: Date
}

extension Mailbox {
    /// The devices that have listened to it and are not forgotten.
    public func devices() async throws(QueueListenError) -> [MailboxDevice] { try await inspect()?.devices ?? [] }

    /// What is in it; `nil` when there is no such mailbox.
    public func inspect() async throws(QueueListenError) -> MailboxInspection? {
        let reply = try await run(Scripts.inspect, [])
        if reply.array?.isEmpty == true { return nil }
        guard let parts = reply.array, parts.count == 11, parts[0].string == "ok",
            let epoch = parts[2].bytes.flatMap({ UInt64(mark: $0) }), let last = parts[3].integer,
            let from = parts[4].integer, let bytes = parts[6].integer, let limits = parts[7].string,
            let left = parts[8].integer, let cells = parts[9].array, let waiters = parts[10].array
        else { throw QueueListenError(refusal: reply, partitions: partition.total) }
        let devices = stride(from: 0, to: cells.count - 3, by: 4).compactMap { at -> MailboxDevice? in
            guard let name = cells[at].string, let index = cells[at + 1].integer,
                let tag = cells[at + 2].bytes.flatMap({ UInt64(mark: $0) }), let seen = cells[at + 3].integer
            else { return nil }
            return MailboxDevice(
                name: name, acknowledged: Cursor(epoch: epoch, index: index, tag: tag),
                lastSeen: Date(timeIntervalSince1970: Double(seen) / 1000))
        }
        return MailboxInspection(
            count: last - from, bytes: bytes, first: from + 1, last: last, devices: devices,
            listeningProcesses: waiters.count / 2, limits: MailboxLimits(words: limits),
            ttl: left < 0 ? nil : .milliseconds(left))
    }
}
