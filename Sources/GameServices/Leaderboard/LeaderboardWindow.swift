import Hiredis

/// The time that one ranking of a leaderboard covers, in UTC.
///
/// A ranking starts empty with each window. Redis's clock decides to which window a score belongs.
public struct LeaderboardWindow: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case allTime, daily, weekly, monthly
        /// A fixed length in microseconds, for tests.
        case every(Int)
    }
    let kind: Kind

    /// One ranking that never ends.
    public static let allTime = LeaderboardWindow(kind: .allTime)
    /// From 00:00 to 24:00.
    public static let daily = LeaderboardWindow(kind: .daily)
    /// From Monday 00:00 to Sunday 24:00 (ISO 8601).
    public static let weekly = LeaderboardWindow(kind: .weekly)
    /// From the first of a month 00:00 to its last day 24:00.
    public static let monthly = LeaderboardWindow(kind: .monthly)

    static func every(_ length: Duration) -> LeaderboardWindow {
        LeaderboardWindow(kind: .every(length.wholeMicroseconds))
    }
}

extension LeaderboardWindow: LosslessStringConvertible {
    /// `all-time`, `daily`, `weekly` or `monthly`.
    public var description: String {
        switch kind {
        case .allTime: "all-time"
        case .daily: "daily"
        case .weekly: "weekly"
        case .monthly: "monthly"
        case .every(let length): "every-\(length)"
        }
    }

    /// Creates a window from its description; `nil` if there is no such window.
    public init?(_ description: String) {
        let all: [LeaderboardWindow] = [.allTime, .daily, .weekly, .monthly]
        guard let window = all.first(where: { $0.description == description }) else { return nil }
        self = window
    }
}

/// One period of a window: a day, a week, a month, or all time. Times are in microseconds since 1970.
struct WindowPeriod: Sendable, Hashable {
    /// The window's description and the period in the notation of ISO 8601: `daily:2026-11-22`,
    /// `weekly:2026-W47`, `monthly:2026-11`, `all-time`.
    var id: String
    var start: Int
    /// `nil` for all time.
    var end: Int?
}

extension LeaderboardWindow {
    private static let day = 86_400_000_000

    /// Returns the period that contains a time, or an earlier one.
    ///
    /// - Parameters:
    ///   - time: microseconds since 1970, 0 or more.
    ///   - ago: the number of periods before it.
    func period(at time: Int, ago: Int = 0) -> WindowPeriod {
        let day = time / Self.day
        switch kind {
        case .allTime: return WindowPeriod(id: description, start: 0, end: nil)
        case .daily:
            let day = day - ago
            return period(CalendarDay(daysSince1970: day).text, from: day, to: day + 1)
        case .weekly:
            // 1970-01-01 was a Thursday.
            let monday = day - (day + 3) % 7 - 7 * ago
            let week = CalendarDay.week(ofMonday: monday)
            return period("\(week.year)-W\(CalendarDay.digits(week.number, 2))", from: monday, to: monday + 7)
        case .monthly:
            let date = CalendarDay(daysSince1970: day)
            let month = date.year * 12 + date.month - 1 - ago
            let first = CalendarDay(year: month / 12, month: month % 12 + 1, day: 1)
            let next = CalendarDay(year: (month + 1) / 12, month: (month + 1) % 12 + 1, day: 1)
            return period(String(first.text.dropLast(3)), from: first.daysSince1970, to: next.daysSince1970)
        case .every(let length):
            let number = time / length - ago
            return WindowPeriod(id: "\(description):\(number)", start: number * length, end: (number + 1) * length)
        }
    }

    /// Returns the period with an id, if it is no further from a time than a distance; both in microseconds.
    func period(id: String, near time: Int, within distance: Int) -> WindowPeriod? {
        var count = 0
        while true {
            let (earlier, later) = (period(at: time, ago: count), period(at: time, ago: -count))
            if earlier.id == id { return earlier }
            if later.id == id { return later }
            guard earlier.start > time - distance || (later.end ?? .max) < time + distance else { return nil }
            count += 1
        }
    }

    private func period(_ name: String, from first: Int, to next: Int) -> WindowPeriod {
        WindowPeriod(id: "\(description):\(name)", start: first * Self.day, end: next * Self.day)
    }
}
