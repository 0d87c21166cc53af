// The five fields of a crontab line, and the moments at which they match in a time zone.
//
// The fields are those of POSIX crontab, with the names, steps and words that most programs have added to them.

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// When something recurs: `minute hour day-of-month month day-of-week`.
struct CronExpression: Sendable, Hashable {
    /// As it was given, with single spaces.
    let text: String
    /// The numbers that match, as bits.
    private let minutes: UInt64
    private let hours: UInt64
    private let days: UInt64
    private let months: UInt64
    /// Sunday is 0.
    private let weekdays: UInt64
    /// Whether a day matches if it is in one of `days` and `weekdays`: both are restricted. Otherwise it must be in both.
    private let isEitherDay: Bool

    private static let allHours: UInt64 = (1 << 24) - 1
    /// The longest time between two occurrences is 8 years, from one 29 February to another.
    private static let horizon = 9 * 366

    // MARK: Parse

    /// - Throws: `.invalidArgument`, with what is wrong.
    init(_ line: String) throws(QueueListenError) {
        let words = line.split(separator: " ").map(String.init)
        text = words.joined(separator: " ")
        let fields = words.count == 1 ? Self.lines[words[0].lowercased()] ?? words : words
        guard fields.count == 5 else {
            throw Self.fault(
                line, "it has \(fields.count) fields, expected 5: minute hour day-of-month month day-of-week")
        }
        minutes = try Self.bits(fields[0], 0...59, "minute", line)
        hours = try Self.bits(fields[1], 0...23, "hour", line)
        days = try Self.bits(fields[2], 1...31, "day of the month", line)
        months = try Self.bits(fields[3], 1...12, "month", names: Self.monthNames, line)
        let weekdays = try Self.bits(fields[4], 0...7, "day of the week", names: Self.weekdayNames, line)
        // Both 0 and 7 are Sunday.
        self.weekdays = (weekdays | weekdays >> 7) & 0x7f
        isEitherDay = !fields[2].hasPrefix("*") && !fields[4].hasPrefix("*")
        guard let gmt = TimeZone(secondsFromGMT: 0), next(after: 0, in: gmt) != nil else {
            throw Self.fault(line, "no date has this day and this month")
        }
    }

    private static let lines: [String: [String]] = [
        "@hourly": ["0", "*", "*", "*", "*"], "@daily": ["0", "0", "*", "*", "*"],
        "@midnight": ["0", "0", "*", "*", "*"], "@weekly": ["0", "0", "*", "*", "0"],
        "@monthly": ["0", "0", "1", "*", "*"], "@yearly": ["0", "0", "1", "1", "*"],
        "@annually": ["0", "0", "1", "1", "*"],
    ]
    private static let monthNames = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    private static let weekdayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

    private static func fault(_ line: String, _ reason: String) -> QueueListenError {
        QueueListenError(.invalidArgument, "\"\(line)\" is not a cron expression: \(reason)")
    }

    /// The numbers of one field: items separated by commas, each `*`, a number or a range, with a step after a slash.
    private static func bits(
        _ field: String, _ range: ClosedRange<Int>, _ name: String, names: [String] = [], _ line: String
    ) throws(QueueListenError) -> UInt64 {
        let wrong = fault(
            line,
            "its \(name) is \"\(field)\", expected *, numbers from \(range.lowerBound) to \(range.upperBound)"
                + (names.isEmpty ? "" : ", names such as \(names[1])") + ", ranges a-b, steps /n, separated by commas")
        func number(_ word: Substring) throws(QueueListenError) -> Int {
            if let position = names.firstIndex(of: word.lowercased()) { return position + range.lowerBound }
            guard word.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(word), range.contains(number) else {
                throw wrong
            }
            return number
        }
        var bits: UInt64 = 0
        for item in field.split(separator: ",", omittingEmptySubsequences: false) {
            let parts = item.split(separator: "/", omittingEmptySubsequences: false)
            guard let span = parts.first, parts.count <= 2 else { throw wrong }
            var step = 1
            if parts.count == 2 {
                guard parts[1].allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(parts[1]), number > 0 else {
                    throw wrong
                }
                step = number
            }
            let ends = span.split(separator: "-", omittingEmptySubsequences: false)
            let first: Int
            let last: Int
            switch (span, ends.count) {
            // 7 is another name of Sunday.
            case ("*", _): (first, last) = (range.lowerBound, range.upperBound == 7 ? 6 : range.upperBound)
            case (_, 1):
                first = try number(ends[0])
                last = parts.count == 2 ? range.upperBound : first
            case (_, 2): (first, last) = (try number(ends[0]), try number(ends[1]))
            default: throw wrong
            }
            guard first <= last else { throw wrong }
            for number in stride(from: first, through: last, by: step) { bits |= 1 << UInt64(number) }
        }
        return bits
    }

    // MARK: Match

    private static let calendar: Calendar = {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(secondsFromGMT: 0)!
        return calendar
    }()

    /// Whether a day matches. Wall-clock times are seconds since 1970-01-01 00:00 on the same clock.
    private func matches(day wall: Int) -> Bool {
        let date = Date(timeIntervalSince1970: Double(wall))
        let parts = Self.calendar.dateComponents([.month, .day, .weekday], from: date)
        guard let month = parts.month, let day = parts.day, let weekday = parts.weekday else { return false }
        func has(_ bits: UInt64, _ number: Int) -> Bool { bits & 1 << UInt64(number) != 0 }
        let (isDay, isWeekday) = (has(days, day), has(weekdays, weekday - 1))
        return has(months, month) && (isEitherDay ? isDay || isWeekday : isDay && isWeekday)
    }

    /// The first moment after another one at which it matches, in milliseconds since 1970; `nil` if there is none.
    ///
    /// - If the hour is `*`, elapsed time counts: the hour that the clock skips does not occur, and the one that it repeats
    ///   occurs twice.
    /// - Otherwise each time of a day counts once: one that the clock skips is the moment at which it does, and of one that it
    ///   repeats the first counts.
    func next(after milliseconds: Int, in zone: TimeZone) -> Int? {
        let seconds = Int((Double(milliseconds) / 1000).rounded(.down))
        let clock = WallClock(zone: zone)
        let next = hours == Self.allHours ? byElapsedTime(seconds, clock) : byWallClock(seconds, clock)
        return next.map { $0 * 1000 }
    }

    private func byElapsedTime(_ seconds: Int, _ clock: WallClock) -> Int? {
        var moment = seconds + 60 - clock.wall(seconds).modulo(60)
        var days = 0
        while days < Self.horizon {
            let wall = clock.wall(moment)
            let midnight = wall - wall.modulo(86_400)
            days += 1
            guard matches(day: midnight) else {
                // A clock that is set back across midnight shows the first minutes of the next day twice.
                moment = max(moment + 60, clock.first(midnight + 86_400))
                continue
            }
            var now = wall
            while (midnight..<midnight + 86_400).contains(now) {
                if minutes & 1 << UInt64(now.modulo(3600) / 60) != 0 { return moment }
                moment += 60
                now = clock.wall(moment)
            }
        }
        return nil
    }

    private func byWallClock(_ seconds: Int, _ clock: WallClock) -> Int? {
        let wall = clock.wall(seconds)
        // A day earlier: this may be an hour that the clock repeats.
        var midnight = wall - wall.modulo(86_400) - 86_400
        for _ in 0..<Self.horizon {
            defer { midnight += 86_400 }
            guard matches(day: midnight) else { continue }
            for hour in 0..<24 where hours & 1 << UInt64(hour) != 0 {
                let hour = midnight + hour * 3600
                if clock.first(hour + 59 * 60) <= seconds { continue }
                for minute in 0..<60 where minutes & 1 << UInt64(minute) != 0 {
                    let moment = clock.first(hour + minute * 60)
                    if moment > seconds { return moment }
                }
            }
        }
        return nil
    }
}

/// The clock on the wall in a time zone.
private struct WallClock {
    var zone: TimeZone

    /// What it shows at a moment, as seconds since it has shown 1970-01-01 00:00.
    func wall(_ moment: Int) -> Int { moment + offset(moment) }

    /// The first moment at which it shows that time, or at which it skips it.
    func first(_ wall: Int) -> Int {
        // The offsets a day before and after: clocks change less often.
        let (before, after) = (offset(wall - 86_400), offset(wall + 86_400))
        for offset in [before, after] where self.offset(wall - offset) == offset { return wall - offset }
        // It is skipped. The change is between the moment at which the clock would show that time after it, and that before.
        var (low, high) = (wall - max(before, after), wall - min(before, after))
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if offset(middle) == after { high = middle } else { low = middle }
        }
        return high
    }

    private func offset(_ moment: Int) -> Int {
        zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(moment)))
    }
}

extension Int {
    /// The remainder of a division that rounds down.
    fileprivate func modulo(_ divisor: Int) -> Int { (self % divisor + divisor) % divisor }
}
