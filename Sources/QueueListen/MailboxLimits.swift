import Hiredis

/// The limits of a mailbox. The defaults bound every mailbox of a server.
public struct MailboxLimits: Sendable, Hashable {
    /// The maximum number of messages in the mailbox, 1 to 100,000,000. Default 100,000.
    public var maxMessages = 100_000
    /// The maximum number of bytes in the mailbox, 1,024 to 1,073,741,824 (1 GiB). Each message
    /// needs about 80 bytes besides its body. Default 64 MiB.
    ///
    /// Redis finds a message in the middle of a mailbox in time proportional to the mailbox's size.
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

    /// The interval at which a waiting device renews the time at which it was last seen; 0 if devices are never forgotten.
    ///
    /// At most an hour: the device that was not seen for the longest time, which a gateway replaces, is then one that has
    /// not waited within the last hour, if there is any.
    var deviceRefreshInterval: Duration {
        deviceTTL.map { max(.milliseconds(1), min($0 / 4, .seconds(3600))) } ?? .zero
    }

    /// - Throws: `.invalidArgument`, with the name of the property and its allowed range.
    func validate() throws(QueueListenError) {
        func require(_ holds: Bool, _ message: @autoclosure () -> String) throws(QueueListenError) {
            if !holds { throw QueueListenError(.invalidArgument, message()) }
        }
        try require(
            (1...100_000_000).contains(maxMessages),
            "maxMessages is \(maxMessages), expected 1 to 100,000,000")
        try require(
            (1024...1 << 30).contains(maxBytes), "maxBytes is \(maxBytes), expected 1,024 to 1,073,741,824")
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

    /// The number of bytes of ``packed``, and of the part of it that a send passes: the limits up to
    /// the time to live. A listen passes the rest and the time to live.
    static let packedSize = 57
    static let sendPart = 0..<33
    static let listenPart = 25..<57

    /// Limits of Lua/records.lua.
    var packed: [UInt8] {
        var packed = PackedBytes()
        packed.number(maxMessages)
        packed.number(maxBytes)
        packed.byte(whenFull == .reject ? 0 : 1)
        packed.number(maxAge?.wholeMilliseconds ?? 0)
        packed.number(ttl?.wholeMilliseconds ?? 0)
        packed.number(backlogCount)
        packed.number(backlogAge.wholeMilliseconds)
        packed.number(deviceTTL?.wholeMilliseconds ?? 0)
        return packed.bytes
    }

    /// Reads ``packed``; `nil` if the bytes are not in that form.
    init?(packed: [UInt8]) {
        var reader = ByteReader(packed)
        guard packed.count == Self.packedSize, let maxMessages = reader.number(), let maxBytes = reader.number(),
            let policy = reader.integer(size: 1), let maxAge = reader.number(), let ttl = reader.number(),
            let backlogCount = reader.number(), let backlogAge = reader.number(), let deviceTTL = reader.number()
        else { return nil }
        func duration(_ milliseconds: Int) -> Duration? { milliseconds > 0 ? .milliseconds(milliseconds) : nil }
        self.maxMessages = maxMessages
        self.maxBytes = maxBytes
        self.maxAge = duration(maxAge)
        whenFull = policy == 1 ? .dropOldest : .reject
        self.ttl = duration(ttl)
        self.backlogCount = backlogCount
        self.backlogAge = duration(backlogAge) ?? .zero
        self.deviceTTL = duration(deviceTTL)
    }
}

/// The policy for a message that does not fit into a mailbox.
public enum OverflowPolicy: Sendable, Hashable {
    /// The send fails with `.mailboxFull`, for all of its recipients.
    case reject
    /// The oldest messages are deleted, whether they were read or not. A reader that has not read
    /// them receives ``Delivery/Status/truncated(first:)``.
    case dropOldest
}
