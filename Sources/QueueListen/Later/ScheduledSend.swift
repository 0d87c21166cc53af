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
    ///
    /// Of a recurring send, its next occurrence.
    public let time: Date
    /// When a recurring send is due; `nil` for one that is sent once, or if this machine does not know the time zone.
    public let recurrence: Recurrence?

    init(id: String, milliseconds: Int, _ recurrence: Recurrence?) {
        (self.id, self.recurrence) = (id, recurrence)
        time = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
    }
}

/// When a send is due.
enum SendTime: Sendable {
    /// In milliseconds since 1970.
    case at(Int)
    /// From now on.
    case after(Duration)
    /// Again and again.
    case recurring(RecurrenceRule)

    /// The last millisecond of the year 9999.
    static let maxMilliseconds = 253_402_300_799_999

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
