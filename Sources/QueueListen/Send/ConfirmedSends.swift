// The sends that Redis has confirmed lately, to be sent again if it loses them.
import CoordinationBase
import DequeModule
import Hiredis

/// A send that Redis has confirmed.
struct ConfirmedSend: Sendable {
    /// The index of the first message in a recipient's mailbox, and the mailbox's epoch.
    typealias Result = (firstIndex: Int, epoch: UInt64)

    var encodedSend: EncodedSend
    var request: SendScriptRequest
    /// Whether it was confirmed as soon as it was carried out: it waited for no replica and no disk.
    var isInOrder: Bool
    /// For each recipient.
    var results: [Result]
    let sentAt: Duration
    var confirmedAt: Duration
    /// The time until which Redis certainly keeps the answer to the request, so that repeating it has one effect.
    var repeatableUntil: Duration

    /// About the number of bytes that it takes.
    var size: Int {
        let overhead = 256
        return encodedSend.contents.reduce(overhead) { $0 + $1.envelope.count + $1.collapseKey.utf8.count + 64 }
            + encodedSend.recipients.reduce(0) { $0 + $1.utf8.count + 64 }
    }
}

/// The last confirmed sends of a sender, the oldest first.
///
/// They are bounded by their bytes and by the time between the first and the last one: while Redis confirms nothing, it
/// loses nothing more, and all of them are kept.
struct ConfirmedSends: Sendable {
    let maxBytes: Int
    let maxAge: Duration
    private(set) var sends = Deque<ConfirmedSend>()
    private var bytes = 0

    init(maxBytes: Int, maxAge: Duration) { (self.maxBytes, self.maxAge) = (maxBytes, maxAge) }

    mutating func append(_ send: ConfirmedSend) {
        let size = send.size
        guard size <= maxBytes, maxAge > .zero else { return }
        sends.append(send)
        bytes += size
        while bytes > maxBytes || sends[0].confirmedAt + maxAge < send.confirmedAt { bytes -= sends.removeFirst().size }
    }

    /// Removes all of them, to be checked and appended again.
    mutating func takeAll() -> [ConfirmedSend] {
        defer {
            sends = []
            bytes = 0
        }
        return Array(sends)
    }
}
