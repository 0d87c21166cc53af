import Hiredis

#if canImport(FoundationEssentials)
    public import FoundationEssentials
    // The time zones: FoundationEssentials alone knows GMT only.
    import FoundationInternationalization
#else
    public import Foundation
#endif

/// When a recurring send is due.
public struct Recurrence: Sendable, Hashable {
    private enum Rule: Hashable {
        /// In milliseconds, from a moment in milliseconds since 1970.
        case every(Int, from: Int)
        case cron(CronExpression, TimeZone)
    }

    private let rule: Rule

    private init(_ rule: Rule) { self.rule = rule }

    /// At regular intervals.
    ///
    /// - Parameters:
    ///   - interval: 1 second to 3,650 days, rounded to milliseconds.
    ///   - start: the first time, from 1970 to 9999. With `nil` the times are the multiples of the
    ///     interval since the beginning of 1970 in UTC, so that all processes mean the same times:
    ///     with 60 seconds each whole minute.
    /// - Throws: `.invalidArgument`.
    public static func every(_ interval: Duration, from start: Date? = nil) throws(QueueListenError) -> Recurrence {
        guard interval >= .seconds(1), interval <= .seconds(3650 * 86400) else {
            throw QueueListenError(.invalidArgument, "the interval is \(interval), expected 1 second to 3650 days")
        }
        var first = 0
        if let start, case .at(let milliseconds) = try SendTime(start) { first = milliseconds }
        return Recurrence(.every(interval.wholeMilliseconds, from: first))
    }

    /// At the times that a line of a crontab describes.
    ///
    /// The fields are `minute hour day-of-month month day-of-week`, each `*`, or numbers, ranges (`1-5`),
    /// and steps (`*/15`, `8-18/2`), separated by commas. Months and days of the week may have their
    /// English names (`jan`, `mon`); Sunday is 0 and 7. If both days are restricted, one of them must
    /// match. `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` are known too.
    ///
    /// When the clock is set forward or back:
    ///
    /// - With an hour other than `*`, each time of a day counts once. One that the clock skips is the
    ///   moment at which it does so. Of one that the clock repeats the first counts.
    /// - With the hour `*`, elapsed time counts: the skipped hour does not occur, and the repeated one
    ///   occurs twice.
    ///
    /// - Parameter zone: the time zone of the fields. Every process that may carry out the send must
    ///   know it by its identifier; one that does not leaves the send to others.
    /// - Throws: `.invalidArgument`, with what is wrong.
    public static func cron(_ line: String, in zone: TimeZone) throws(QueueListenError) -> Recurrence {
        guard TimeZone(identifier: zone.identifier) != nil else {
            throw QueueListenError(
                .invalidArgument,
                "the time zone \"\(zone.identifier)\" is unknown by its identifier; use one such as Europe/Berlin or GMT"
            )
        }
        return Recurrence(.cron(try CronExpression(line), zone))
    }

    /// The first occurrence after a moment, in milliseconds since 1970; `nil` if there is none until 9999.
    func next(after time: Int) -> Int? {
        let next: Int? =
            switch rule {
            case .every(let interval, let first):
                time < first ? first : first + ((time - first) / interval + 1) * interval
            case .cron(let expression, let zone): expression.next(after: time, in: zone)
            }
        return next.flatMap { $0 <= SendTime.maxMilliseconds ? $0 : nil }
    }

    // MARK: Text

    /// As it is stored in Redis.
    var text: String {
        switch rule {
        case .every(let interval, let first): "every \(interval) \(first)"
        case .cron(let expression, let zone): "cron \(zone.identifier) \(expression.text)"
        }
    }

    /// - Throws: `.corruptData`, if this version does not know the text, or this machine the time zone.
    init(text: String) throws(QueueListenError) {
        let words = text.split(separator: " ", maxSplits: 2).map(String.init)
        switch words.first {
        case "every" where words.count == 3:
            guard let interval = Int(words[1]), interval > 0, let first = Int(words[2]) else { break }
            rule = .every(interval, from: first)
            return
        case "cron" where words.count == 3:
            guard let zone = TimeZone(identifier: words[1]) else {
                throw QueueListenError(.unsupported, "this machine does not know the time zone \"\(words[1])\"")
            }
            rule = .cron(try CronExpression(words[2]), zone)
            return
        default: break
        }
        throw QueueListenError(.unsupported, "the recurrence \"\(text)\" is of a later version")
    }
}

extension Recurrence: CustomStringConvertible {
    /// For people: the interval, or the line of the crontab and the time zone.
    public var description: String {
        switch rule {
        case .every(let interval, 0): "every \(Duration.milliseconds(interval))"
        case .every(let interval, let first):
            "every \(Duration.milliseconds(interval)) from \(Date(timeIntervalSince1970: Double(first) / 1000))"
        case .cron(let expression, let zone): "\(expression.text) \(zone.identifier)"
        }
    }
}

/// What happens to an occurrence of a recurring send for which no post office ran, or Redis was away.
public enum MissedOccurrence: Sendable, Hashable {
    /// It is sent as soon as possible, unless it is more than 29 days late. If several were missed,
    /// only the earliest of them is sent.
    case sendOnce
    /// It is not sent if it is later than that: 0 to 28 days.
    case skip(after: Duration)
}

/// How a send recurs, as it is stored with its record.
struct RecurrenceRule: Sendable, Hashable {
    var recurrence: Recurrence
    /// The lateness in milliseconds from which an occurrence is skipped.
    private var maxLateness: Int?
    /// An occurrence that is as late as a scheduled send that is given up is missed in any case.
    private static let longestLateness = RecordedSends.recordLifetime.wholeMilliseconds

    /// - Throws: `.invalidArgument`.
    init(_ recurrence: Recurrence, _ missed: MissedOccurrence) throws(QueueListenError) {
        self.recurrence = recurrence
        guard case .skip(let lateness) = missed else { return }
        guard lateness >= .zero, lateness <= .seconds(28 * 86400) else {
            throw QueueListenError(.invalidArgument, "missed is .skip(after: \(lateness)), expected 0 to 28 days")
        }
        maxLateness = lateness.wholeMilliseconds
    }

    /// Whether an occurrence that is so late, in milliseconds, is not sent any more.
    func skips(_ lateness: Int) -> Bool { lateness > min(maxLateness ?? .max, Self.longestLateness) }

    var text: String { (maxLateness.map { "skip \($0) " } ?? "once ") + recurrence.text }

    /// - Throws: as ``Recurrence/init(text:)``.
    init(text: String) throws(QueueListenError) {
        var words = text.split(separator: " ", maxSplits: 1)
        if words.first == "skip", words.count == 2 {
            words = text.split(separator: " ", maxSplits: 2)
            maxLateness = words.count == 3 ? Int(words[1]) : nil
        }
        recurrence = try Recurrence(text: words.last.map(String.init) ?? "")
    }
}
