// A sender's record of the mailboxes that it has sent to.
import CoordinationBase
import Hiredis

/// The last confirmed message in each mailbox that this sender has sent to recently.
///
/// The sender passes it with its next send to the mailbox. If Redis has lost that message, the script refuses the send.
/// Then the sender sends again what is lost. If it no longer has it, the mailbox gets a new epoch, which reports the loss
/// to its readers.
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

    /// Records the last message of a send in each recipient's mailbox.
    ///
    /// - Parameter tags: of the send's messages.
    mutating func record(_ send: ConfirmedSend, _ tags: [UInt64]) {
        for (position, result) in send.results.enumerated() {
            let last = Cursor(
                epoch: result.epoch, index: result.firstIndex + send.encodedSend.count(of: position) - 1,
                tag: tags[send.encodedSend.last(of: position)])
            record(last, in: send.encodedSend.recipients[position])
        }
    }

    /// Forgets the message in a mailbox, which is lost or of an earlier epoch.
    mutating func forget(_ mailbox: String) { last[ByteName(mailbox)] = nil }

    /// Forgets the message in a mailbox if it is this one.
    mutating func forget(_ mailbox: String, ifAt index: Int, epoch: UInt64) {
        guard let known = last[ByteName(mailbox)], known.index == index, known.epoch == epoch else { return }
        forget(mailbox)
    }

    /// The last confirmed message in each of these mailboxes, ``Cursor/none`` if it is not known;
    /// empty if none is known.
    func cursors(of mailboxes: [String]) -> [Cursor] {
        let cursors = mailboxes.map { last[ByteName($0)] ?? .none }
        return cursors.contains { $0 != .none } ? cursors : []
    }
}
