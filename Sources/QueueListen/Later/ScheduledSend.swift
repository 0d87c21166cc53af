#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A send that is due later.
public struct ScheduledSend: Sendable, Hashable {
    /// The id of the send, with which it can be cancelled: the caller's own, or a generated one.
    public let id: String
    /// When it is due, by the clock of the Redis server, in milliseconds.
    public let time: Date

    init(id: String, milliseconds: Int) {
        self.id = id
        time = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
    }
}

/// When a send is due.
enum SendTime: Sendable {
    /// In milliseconds since 1970.
    case at(Int)
    /// From now on.
    case after(Duration)

    /// The last millisecond of the year 9999.
    private static let maxMilliseconds = 253_402_300_799_999

    /// - Throws: `.invalidArgument`.
    init(_ date: Date) throws(QueueListenError) {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded(.up)
        guard milliseconds >= 0, milliseconds <= Double(Self.maxMilliseconds) else {
            throw QueueListenError(.invalidArgument, "the time is \(date), expected one from 1970 to 9999")
        }
        self = .at(Int(milliseconds))
    }

    /// - Throws: `.invalidArgument`.
    init(after delay: Duration) throws(QueueListenError) {
        guard delay >= .zero, delay <= .seconds(3650 * 86400) else {
            throw QueueListenError(.invalidArgument, "the delay is \(delay), expected 0 to 3650 days")
        }
        self = .after(delay)
    }
}
