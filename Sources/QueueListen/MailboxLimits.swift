// What a mailbox holds at most, and for how long.
import Hiredis

/// What happens when a mailbox is full.
public enum OverflowPolicy: Sendable, Hashable {
    /// The send is refused with `.mailboxFull`, for all its recipients.
    case reject
    /// The oldest messages go, read or not. A reader that has not read them is told `.truncated(first:)`.
    case dropOldest
}

/// The bounds of a mailbox. The defaults are those of a server that lets nobody grow without a bound.
public struct MailboxLimits: Sendable, Hashable {
    /// Most messages that wait, 1 to 100,000,000. Default 100,000.
    public var maxMessages = 100_000
    /// Most bytes that wait, from 1,024. About 80 of them for each message are not its body. Default 64 MiB.
    public var maxBytes = 64 * 1024 * 1024
    /// How long a message is worth delivering, from 1 ms; `nil`: for ever. Afterwards it is passed over, and it is the first
    /// to make room. Default: for ever.
    public var maxAge: Duration?
    /// What happens beyond these. Default: the send is refused.
    public var whenFull = OverflowPolicy.reject
    /// A mailbox that nobody sends to or listens to for so long is deleted; at least 1 s, `nil`: never. Default 30 days.
    /// As a mailbox's own limit, more than twice ``PostOfficeConfiguration/recheckInterval``, by which who waits shows that
    /// he is there.
    public var ttl: Duration? = .seconds(30 * 86400)
    /// So many messages stay although every device has acknowledged them, for devices that come later. Default 0.
    public var backlogCount = 0
    /// Messages stay for so long although every device has acknowledged them. Default 0.
    ///
    /// With both, a message stays when either says so.
    public var backlogAge: Duration = .zero
    /// A device that has not listened for so long is forgotten, and no message stays for it; at least 1 s, `nil`: never.
    /// Default 30 days.
    public var deviceTTL: Duration? = .seconds(30 * 86400)

    public init() {}

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

    /// As mail_limits.lua takes them.
    var words: [String] {
        [
            "\(maxMessages)", "\(maxBytes)", "\(maxAge?.wholeMilliseconds ?? 0)",
            whenFull == .reject ? "r" : "d", "\(ttl?.wholeMilliseconds ?? 0)", "\(backlogCount)",
            "\(backlogAge.wholeMilliseconds)", "\(deviceTTL?.wholeMilliseconds ?? 0)",
        ]
    }

    /// `nil`: not eight words of ours.
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
