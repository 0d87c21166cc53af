// A sender's record of the mailboxes that it has sent to.
import Hiredis
import CoordinationBase

/// The last confirmed message in each mailbox that this sender has sent to recently.
///
/// The sender passes it with its next send to the mailbox. If Redis has lost that message before
/// anyone read it, the script gives the mailbox a new epoch, which reports the loss to its readers.
struct ConfirmedMessages: Sendable {
    /// The maximum number of mailboxes that are remembered.
    static let capacity = 4096

    private var last: [ByteName: Cursor] = [:]

    mutating func record(_ cursor: Cursor, in mailbox: String) {
        if let known = last[ByteName(mailbox)], known.epoch == cursor.epoch, known.index >= cursor.index { return }
        // Any entry can make room: for a forgotten mailbox a loss is not detected, and nothing else changes.
        if last.count >= Self.capacity, last[ByteName(mailbox)] == nil { last.remove(at: last.startIndex) }
        last[ByteName(mailbox)] = cursor
    }

    /// The argument of mail_send.lua for these mailboxes: index, epoch and tag of each; empty if
    /// none is known.
    func argument(for mailboxes: [String]) -> RedisArgument {
        guard mailboxes.contains(where: { last[ByteName($0)] != nil }) else { return "" }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(24 * mailboxes.count)
        for name in mailboxes {
            let cursor = last[ByteName(name)] ?? .none
            withUnsafeBytes(of: Double(cursor.index).bitPattern.littleEndian) { bytes += $0 }
            bytes += cursor.epoch.bigEndianBytes + cursor.tag.bigEndianBytes
        }
        return .bytes(bytes)
    }
}
