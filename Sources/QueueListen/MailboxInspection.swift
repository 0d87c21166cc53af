import Hiredis

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The state of a mailbox at one moment, for operators and tools.
public struct MailboxInspection: Sendable, Hashable {
    /// The number of messages in the mailbox, including expired and replaced ones.
    public let count: Int
    /// The size of these messages in bytes, without the overhead of Redis.
    public let bytes: Int
    /// The index of the first message; the index of the next message if the mailbox is empty.
    public let first: Int
    /// The index of the last message that was ever sent; 0 if there was none.
    public let last: Int
    /// The devices that have listened and are not forgotten.
    public let devices: [MailboxDevice]
    /// The number of processes that are registered to be notified. A process that has stopped listening is counted for up to
    /// four times its ``PostOfficeConfiguration/recheckInterval``.
    public let listeningProcesses: Int
    /// The mailbox's own limits; `nil` if it has none.
    public let limits: MailboxLimits?
    /// The time until the mailbox is deleted if nobody uses it; `nil` for never.
    public let ttl: Duration?
}

extension Mailbox {
    /// Returns the state of the mailbox; `nil` if it does not exist. Changes nothing.
    ///
    /// Takes at most ``PostOfficeConfiguration/callTimeout``.
    ///
    /// - Throws: `.cancelled`, `.connectionLost`, `.notConnected`, `.notPermitted`, `.stopped`,
    ///   `.wrongType`, `.conflict` (another number of partitions), `.serverError`.
    public func inspect() async throws(QueueListenError) -> MailboxInspection? {
        let reply = try await run(Scripts.inspect, [.bytes(partition.target.bytes)], "inspect")
        if reply.array?.isEmpty == true { return nil }
        guard let parts = reply.array, parts.count == 10, parts[0].string == "ok",
            let epoch = parts[2].bytes.flatMap({ UInt64(bigEndianBytes: $0) }), let last = parts[3].integer,
            let from = parts[4].integer, let bytes = parts[5].integer, let limits = parts[6].bytes,
            let left = parts[7].integer, let listeningProcesses = parts[8].integer, let cells = parts[9].array
        else { throw refusal(reply, "inspect") }
        let devices = stride(from: 0, to: cells.count - 3, by: 4).compactMap { at -> MailboxDevice? in
            guard let name = cells[at].string, let index = cells[at + 1].integer,
                let tag = cells[at + 2].bytes.flatMap({ UInt64(bigEndianBytes: $0) }),
                let seen = cells[at + 3].integer
            else { return nil }
            return MailboxDevice(
                name: name, acknowledged: Cursor(epoch: epoch, index: index, tag: tag),
                lastSeen: Date(timeIntervalSince1970: Double(seen) / 1000))
        }
        return MailboxInspection(
            count: last - from, bytes: bytes, first: from + 1, last: last, devices: devices,
            listeningProcesses: listeningProcesses, limits: MailboxLimits(packed: limits),
            ttl: left < 0 ? nil : .milliseconds(left))
    }
}
