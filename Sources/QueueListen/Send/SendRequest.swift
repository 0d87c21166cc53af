import CoordinationBase
// The validated input of one send.
import Hiredis

/// The messages of one send, and which recipient gets which of them.
struct SendRequest: Sendable {
    // A send is one script in each partition, and Redis serves no one else meanwhile. These limits keep it below 5 ms.
    static let maxRecipients = 256
    /// The maximum of messages times recipients.
    static let maxDeliveries = 768
    /// The maximum of messages with a collapse key times recipients: each is looked up in the mailbox.
    static let maxCollapsingDeliveries = 64
    /// The maximum of bytes times recipients.
    static let maxBytes = 1 << 20

    private(set) var messages: [Message]
    /// Without duplicates, in the order in which they were given.
    private(set) var recipients: [String] = []
    /// The positions in `messages` of each recipient's messages; `nil` if every recipient gets all
    /// messages.
    private(set) var shares: [[Int]]?

    /// A send of the same messages to all recipients.
    ///
    /// - Parameter maxMessageBytes: the maximum size of a message's body.
    /// - Throws: `.invalidArgument`.
    init(_ messages: [Message], to recipients: [String], maxMessageBytes: Int) throws(QueueListenError) {
        self.messages = messages
        if recipients.count == 1 {
            self.recipients = recipients
        } else {
            var seen: Set<[UInt8]> = []
            // Compares bytes, as the server does: two strings that are equal in Swift may be two names in Redis.
            for name in recipients where seen.insert(Array(name.utf8)).inserted { self.recipients.append(name) }
        }
        guard !messages.isEmpty else {
            throw QueueListenError(.invalidArgument, "cannot send 0 messages: pass at least 1")
        }
        try validate(maxMessageBytes)
    }

    /// A send of different messages to each recipient.
    ///
    /// - Parameter maxMessageBytes: the maximum size of a message's body.
    /// - Throws: `.invalidArgument`.
    init(_ messages: [String: [Message]], maxMessageBytes: Int) throws(QueueListenError) {
        self.messages = []
        recipients = messages.keys.sorted()
        var shares: [[Int]] = []
        for name in recipients {
            let own = messages[name]!
            guard !own.isEmpty else {
                throw QueueListenError(
                    .invalidArgument, "cannot send 0 messages to \"\(name)\": pass at least 1, or omit the recipient")
            }
            shares.append(Array(self.messages.count..<self.messages.count + own.count))
            self.messages += own
        }
        self.shares = shares
        try validate(maxMessageBytes)
    }

    private func validate(_ maxMessageBytes: Int) throws(QueueListenError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(QueueListenError) {
            if !holds { throw QueueListenError(.invalidArgument, message()) }
        }
        try require(
            (1...Self.maxRecipients).contains(recipients.count),
            "cannot send to \(recipients.count) recipients at once: expected 1 to \(Self.maxRecipients)")
        /// The sum over all recipients.
        func total(_ value: (Message) -> Int) -> Int {
            messages.reduce(0) { $0 + value($1) } * (shares == nil ? recipients.count : 1)
        }
        let deliveries = total { _ in 1 }
        try require(
            deliveries <= Self.maxDeliveries,
            "cannot deliver \(deliveries) messages at once (messages times recipients): "
                + "expected at most \(Self.maxDeliveries), use several sends")
        let collapsing = total { $0.collapseKey == nil ? 0 : 1 }
        try require(
            collapsing <= Self.maxCollapsingDeliveries,
            "cannot deliver \(collapsing) messages with a collapse key at once (messages times recipients): "
                + "expected at most \(Self.maxCollapsingDeliveries), use several sends")
        for name in recipients { try MailName.validate(name, "recipient's name") }
        if let fault = invalidReason(recipients) { throw QueueListenError(.invalidArgument, fault) }
        for message in messages { try message.validate(maxBodyBytes: maxMessageBytes) }
        let bytes = total(\.size)
        try require(
            bytes <= Self.maxBytes,
            "cannot send \(bytes) bytes at once (all messages times recipients): "
                + "expected at most \(Self.maxBytes), use several sends or smaller messages")
    }

    /// The send with its messages encoded, under an id.
    func encoded(id: String) -> EncodedSend {
        EncodedSend(
            contents: messages.enumerated().map { number, message in
                EncodedSend.Content(
                    life: message.ttl?.wholeMilliseconds ?? 0, collapseKey: message.collapseKey ?? "",
                    envelope: Envelope.encode(message, id: "\(id)/\(number)"))
            }, recipients: recipients, shares: shares)
    }
}

extension Receipt {
    /// - Parameter firstIndices: the index of each recipient's first message.
    init(id: String, _ request: SendRequest, _ firstIndices: [Int], _ durability: Durability) {
        var indices: [String: ClosedRange<Int>] = [:]
        for (position, first) in firstIndices.enumerated() {
            let count = request.shares?[position].count ?? request.messages.count
            indices[request.recipients[position]] = first...(first + count - 1)
        }
        self.init(id: id, indices: indices, durability: durability)
    }
}
