// What a sender remembers of the mailboxes that it has sent to.
import Hiredis
import CoordinationBase

/// The last message that was confirmed in each of the mailboxes that were sent to lately.
///
/// A sender that knows it finds out with the next send when Redis has lost what nobody had read yet: then the mailbox gets a
/// new epoch, and its readers are told.
struct Confirmed: Sendable {
    /// Most mailboxes that are remembered.
    static let capacity = 4096

    private var last: [ByteName: Cursor] = [:]

    mutating func note(_ cursor: Cursor, in mailbox: String) {
        if let known = last[ByteName(mailbox)], known.epoch == cursor.epoch, known.index >= cursor.index { return }
        // Any other one: what is forgotten is only not noticed.
        if last.count >= Self.capacity, last[ByteName(mailbox)] == nil { last.remove(at: last.startIndex) }
        last[ByteName(mailbox)] = cursor
    }

    /// As mail_send.lua takes it.
    func knowledge(of mailboxes: [String]) -> RedisArgument {
        guard mailboxes.contains(where: { last[ByteName($0)] != nil }) else { return "" }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(24 * mailboxes.count)
        for name in mailboxes {
            let cursor = last[ByteName(name)] ?? .none
            withUnsafeBytes(of: Double(cursor.index).bitPattern.littleEndian) { bytes += $0 }
            bytes += cursor.epoch.mark + cursor.tag.mark
        }
        return .bytes(bytes)
    }
}
