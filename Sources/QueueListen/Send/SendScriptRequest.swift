// What one request of the script `send` says, apart from messages and recipients.
import CoordinationBase
import Hiredis

/// The arguments of the script `send` except the messages.
struct SendScriptRequest: Sendable {
    /// What the script does.
    enum Mode: Equatable {
        case send
        /// Checks whether a part of a cross-partition send would be accepted.
        case probe
        /// Sends regardless of limits, until this time of the server's clock in milliseconds since 1970: a part of a
        /// cross-partition send, or what Redis has lost.
        case part(until: Int)
    }

    /// The end of the name of the key that keeps the answer.
    var sender: String
    var number = 1
    /// The place of its answer; `nil` if it is the only request of the sender.
    var place: Int?
    var mode = Mode.send
    /// The time for which the server keeps the answer.
    var answerLifetime: Duration
    /// A hexadecimal number.
    var fingerprint: String

    /// Whether other processes may send under the same id: it is the caller's, or that of a recorded send.
    var hasSharedID: Bool { sender.hasPrefix("id:") || sender.hasPrefix("at:") }

    /// The first argument of the script.
    ///
    /// - Parameters:
    ///   - earlier: the number of the last confirmed request in this place, which Redis must not have lost; 0 for none.
    ///   - known: the last confirmed message in each recipient's mailbox, or nothing.
    func header(
        _ encodedSend: EncodedSend, in partition: Partition, after earlier: Int, _ tags: [UInt64], _ known: [Cursor]
    ) -> [UInt8] {
        var header = PackedBytes()
        var condition = 0
        switch mode {
        case .send:
            header.byte(0)
            condition = earlier
        case .probe: header.byte(1)
        case .part(let deadline):
            header.byte(2)
            condition = deadline
        }
        header.uint16(partition.total)
        header.byte(encodedSend.hasCollapseKeys ? 1 : 0)
        header.uint16(encodedSend.contents.count)
        header.uint16(place ?? 0)
        header.number(number)
        header.number(answerLifetime.wholeMilliseconds)
        header.uint64(UInt64(fingerprint, radix: 16) ?? 0)
        header.number(condition)
        header.raw(partition.limits[MailboxLimits.sendPart])
        for tag in tags { header.uint64(tag) }
        for cursor in known { header.cursor(cursor) }
        return header.bytes
    }
}
