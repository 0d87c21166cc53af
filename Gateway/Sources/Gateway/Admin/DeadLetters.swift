import QueueListen

/// The dead letters of a mailbox, of which the oldest can be sent again to the mailboxes that they came from.
struct DeadLetters: Sendable {
    /// The device of the dead-letter mailbox that has acknowledged what was sent again. Other devices of the mailbox
    /// keep their own position.
    static let device = "dashboard"

    /// A message that somebody has sent to the mailbox, as to any other.
    struct ForeignMessage: Error { var index: Int }

    let mailbox: Mailbox

    init(_ mailbox: Mailbox) { self.mailbox = mailbox }

    /// Returns the oldest letters that were not sent again, and the number of all.
    func oldest(
        _ limit: Int, _ inspection: MailboxInspection?
    ) async throws(QueueListenError) -> (messages: [ReceivedMessage], count: Int) {
        guard let inspection else { return ([], 0) }
        let done = inspection.devices.first { $0.name == Self.device }?.acknowledged.index ?? 0
        let first = max(done, inspection.first - 1)
        return (
            try await mailbox.peek(after: first, limit: limit, maxBytes: 256 * 1024), max(0, inspection.last - first)
        )
    }

    /// Sends the oldest letters again, each one in place of the message from which it was made, and acknowledges them.
    ///
    /// Can be repeated after a failure: the send of each letter has an id that is derived from its position. A message
    /// that is no dead letter ends it before that message.
    ///
    /// - Returns: the number of letters that were sent.
    /// - Throws: `ForeignMessage` if the first message is no dead letter, `QueueListenError`.
    func requeue(_ limit: Int, _ office: PostOffice) async throws -> Int {
        // The device must be known before the mailbox keeps its position.
        _ = try await mailbox.listen(device: Self.device, limit: 1, timeout: .zero)
        let letters = try await oldest(limit, try await mailbox.inspect()).messages
        var sent = 0
        for letter in letters {
            guard let origin = letter.headers["dead-letter-mailbox"] else {
                guard sent > 0 else { throw ForeignMessage(index: letter.index) }
                break
            }
            let headers = letter.headers.filter { !$0.key.hasUTF8Prefix(ReservedHeader.deadLetterPrefix) }
            try await office.send(
                Message(bytes: letter.body, type: letter.type, headers: headers), to: origin,
                id: "requeue-\(letter.cursor)")
            try await mailbox.acknowledge(letter.cursor, device: Self.device)
            sent += 1
        }
        return sent
    }
}
