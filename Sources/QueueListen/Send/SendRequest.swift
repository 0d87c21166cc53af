// What is to be sent to whom, checked and put together for the script.
import Hiredis
import CoordinationBase

/// The messages of one send, and who gets which of them.
struct SendRequest: Sendable {
    static let maxRecipients = 256
    static let maxMessages = 1000
    /// Messages times recipients.
    static let maxDeliveries = 65_536
    static let maxBytes = 64 * 1024 * 1024

    private(set) var messages: [Message]
    /// Each once, in the order in which they were given.
    private(set) var recipients: [String] = []
    /// For each recipient the positions of its messages; `nil`: all.
    private(set) var shares: [[Int]]?

    /// The same messages for all.
    init(_ messages: [Message], to recipients: [String], largest: Int) throws(QueueListenError) {
        self.messages = messages
        if recipients.count == 1 {
            self.recipients = recipients
        } else {
            var seen: Set<[UInt8]> = []
            // By their bytes, as the server compares.
            for name in recipients where seen.insert(Array(name.utf8)).inserted { self.recipients.append(name) }
        }
        guard !messages.isEmpty else { throw QueueListenError(.invalidArgument, "a send has at least 1 message") }
        try validate(largest)
    }

    /// Own messages for each.
    init(_ messages: [String: [Message]], largest: Int) throws(QueueListenError) {
        self.messages = []
        recipients = messages.keys.sorted()
        var shares: [[Int]] = []
        for name in recipients {
            let own = messages[name]!
            guard !own.isEmpty else {
                throw QueueListenError(.invalidArgument, "\"\(name)\" is to get no message, expected at least 1")
            }
            shares.append(Array(self.messages.count..<self.messages.count + own.count))
            self.messages += own
        }
        self.shares = shares
        try validate(largest)
    }

    private func validate(_ largest: Int) throws(QueueListenError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(QueueListenError) {
            if !holds { throw QueueListenError(.invalidArgument, message()) }
        }
        try require(
            (1...Self.maxRecipients).contains(recipients.count),
            "\(recipients.count) recipients, expected 1 to \(Self.maxRecipients)")
        try require(
            messages.count <= Self.maxMessages, "\(messages.count) messages, expected at most \(Self.maxMessages)")
        let deliveries = shares.map { $0.reduce(0) { $0 + $1.count } } ?? messages.count * recipients.count
        try require(
            deliveries <= Self.maxDeliveries,
            "\(deliveries) messages times recipients, expected at most \(Self.maxDeliveries)")
        for name in recipients { try MailName.validate(name, "recipient's name") }
        if let fault = faultOfNames(recipients) { throw QueueListenError(.invalidArgument, fault) }
        for message in messages { try message.validate(largest: largest) }
        let bytes = messages.reduce(0) { $0 + $1.body.count }
        try require(bytes <= Self.maxBytes, "\(bytes) bytes in one send, expected at most \(Self.maxBytes)")
    }

    /// Tells this send from another one under the same id: FNV-1a, 64 bits, over recipients, shares and messages.
    var fingerprint: String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func mix(_ bytes: some Sequence<UInt8>) {
            for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
            hash = (hash ^ 0xFF) &* 0x100_0000_01b3
        }
        for name in recipients { mix(name.utf8) }
        for share in shares ?? [] { mix("\(share.count)".utf8) }
        for message in messages {
            mix((message.type ?? "").utf8)
            mix(message.body)
        }
        return String(hash, radix: 16)
    }

    /// As it is sent.
    func encodedSend(id: String) -> EncodedSend {
        EncodedSend(
            contents: messages.enumerated().map { number, message in
                EncodedSend.Content(
                    life: message.ttl?.wholeMilliseconds ?? 0, collapseKey: message.collapseKey ?? "",
                    envelope: Envelope.encode(message, id: "\(id)/\(number)"))
            }, recipients: recipients, shares: shares)
    }
}
