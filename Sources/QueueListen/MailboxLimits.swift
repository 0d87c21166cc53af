import Hiredis

/// The limits of a mailbox. The defaults bound every mailbox of a server.
public struct MailboxLimits: Sendable, Hashable {
    /// The maximum number of messages in the mailbox, 1 to 100,000,000. Default 100,000.
    public var maxMessages = 100_000
    /// The maximum number of bytes in the mailbox, from 1,024. Each message needs about 80 bytes
    /// besides its body. Default 64 MiB.
    public var maxBytes = 64 * 1024 * 1024
    /// The age at which a message expires, from 1 ms; `nil` for never. An expired message is
    /// skipped, and is the first to be deleted when the mailbox is full. Default `nil`.
    public var maxAge: Duration?
    /// The policy for a message that does not fit. Default: the send fails.
    public var whenFull = OverflowPolicy.reject
    /// The time after which a mailbox is deleted if nobody sends or listens to it, from 1 s; `nil`
    /// for never. Default 30 days.
    ///
    /// As a mailbox's own limit it must be more than twice
    /// ``PostOfficeConfiguration/recheckInterval``, the interval at which waiting listeners renew
    /// it.
    public var ttl: Duration? = .seconds(30 * 86400)
    /// The number of messages that are kept for future devices after every device has acknowledged
    /// them, 0 to 100,000,000. Default 0.
    public var backlogCount = 0
    /// The time for which messages are kept for future devices after every device has acknowledged
    /// them. Default 0.
    ///
    /// A message is kept if either ``backlogCount`` or ``backlogAge`` requires it.
    public var backlogAge: Duration = .zero
    /// The time after its last `listen` at which a device is forgotten, from 1 s; `nil` for never.
    /// No message is kept for a forgotten device. Default 30 days.
    public var deviceTTL: Duration? = .seconds(30 * 86400)

    /// Creates limits with the default values.
    public init() {}

    /// - Throws: `.invalidArgument`, with the name of the property and its allowed range.
    func validate() throws(QueueListenError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(QueueListenError) {
            if !holds { throw QueueListenError(.invalidArgument, message()) }
        }
        try require(
            (1...100_000_000).contains(maxMessages),
            "maxMessages is \(maxMessages), expected 1 to 100,000,000")
        try require(
            (1024...1 << 46).contains(maxBytes), "maxBytes is \(maxBytes), expected at least 1,024")
        try require(
            maxAge ?? .seconds(1) >= .milliseconds(1), "maxAge is \(maxAge!), expected 1 ms or more")
        try require(ttl ?? .seconds(1) >= .seconds(1), "ttl is \(ttl!), expected 1 s or more")
        try require(
            (0...100_000_000).contains(backlogCount), "backlogCount is \(backlogCount), expected 0 to 100,000,000")
        try require(backlogAge >= .zero, "backlogAge is \(backlogAge), expected 0 or more")
        try require(
            deviceTTL ?? .seconds(1) >= .seconds(1),
            "deviceTTL is \(deviceTTL!), expected 1 s or more")
    }

    /// The values in the order and units of mail_limits.lua.
    var words: [String] {
        [
            "\(maxMessages)", "\(maxBytes)", "\(maxAge?.wholeMilliseconds ?? 0)",
            whenFull == .reject ? "r" : "d", "\(ttl?.wholeMilliseconds ?? 0)", "\(backlogCount)",
            "\(backlogAge.wholeMilliseconds)", "\(deviceTTL?.wholeMilliseconds ?? 0)",
        ]
    }

    /// Reads ``words``; `nil` if there are not eight of them.
    init?(words: String) {
        let words = words.split(separator: " ")
        let numbers = words.map { Int($0) ?? -1 }
        guard words.count == 8 else { return nil }
        func duration(_ index: Int) -> Duration? { numbers[index] > 0 ? .milliseconds(numbers[index]) : nil }
        maxMessages = numbers[0]
        maxBytes = numbers[1]
        maxAge = duration(2)
        whenFull = words[3] == "d" ? .dropOldest : .reject
        ttl = duration(4)
        backlogCount = numbers[5]
        backlogAge = duration(6) ?? .zero
        deviceTTL = duration(7)
    }
}
