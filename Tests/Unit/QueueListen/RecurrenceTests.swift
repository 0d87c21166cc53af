// When a recurring send is due, also when clocks are set forward and back.
import Foundation
import Testing

@testable import QueueListen

private func zone(_ name: String) throws -> TimeZone { try #require(TimeZone(identifier: name)) }

private func moment(_ text: String) throws -> Int {
    Int(try Date(text, strategy: .iso8601).timeIntervalSince1970) * 1000
}

private func text(_ moment: Int) -> String {
    Date(timeIntervalSince1970: Double(moment) / 1000).formatted(.iso8601)
}

/// Cron expressions read minute by minute from Foundation's calendar, for comparison.
private struct SlowCron {
    var minutes: Set<Int>
    var hours: Set<Int>
    var days: Set<Int>
    var zone: TimeZone

    private func wall(_ moment: Int) -> Int {
        moment + zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(moment)))
    }

    private func matches(wall: Int) -> Bool {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(secondsFromGMT: 0)!
        let date = Date(timeIntervalSince1970: Double(wall))
        let parts = calendar.dateComponents([.day, .hour, .minute], from: date)
        return minutes.contains(parts.minute!) && hours.contains(parts.hour!) && days.contains(parts.day!)
    }

    /// The occurrences of some days, in seconds since 1970.
    func occurrences(from start: Int, days count: Int) -> [Int] {
        let isElapsed = hours.count == 24
        var found: [Int] = []
        // What the clock has shown last, at the latest.
        var latest = wall(start) - 60
        for moment in stride(from: start, to: start + count * 86_400, by: 60) {
            let wall = wall(moment)
            if isElapsed {
                if matches(wall: wall) { found.append(moment) }
            } else if wall > latest {
                if stride(from: latest + 60, through: wall, by: 60).contains(where: matches) { found.append(moment) }
                latest = wall
            }
        }
        return found
    }
}

extension QueueListenTests {
    @Suite("When a send recurs")
    struct RecurrenceTests {
        @Test(
            "when the clock is set forward or back, each time of a day counts once, and each hour as often as it passes"
        )
        func changes() throws {
            let berlin = try zone("Europe/Berlin")
            // In 2026 the clock skips 2:00 to 3:00 on 29 March, and repeats it on 25 October.
            let table = [
                "30 2 * * *": [
                    "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", "2026-10-24T00:30:00Z",
                    "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z",
                ],
                "30 * * * *": [
                    "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z",
                    "2026-10-25T02:30:00Z",
                ],
                "0,30 2,3 * * *": [
                    "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:00:00Z", "2026-10-25T00:00:00Z",
                    "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z",
                ],
            ]
            for (line, times) in table {
                let recurrence = try Recurrence.cron(line, in: berlin)
                for (time, next) in zip(times, times.dropFirst()) {
                    // Not across the months between.
                    guard try moment(next) - moment(time) < 3 * 86_400_000 else { continue }
                    #expect(recurrence.next(after: try moment(time)).map(text) == next, "\(line) after \(time)")
                }
            }
        }

        @Test(
            "each change of a clock is followed, in zones of all kinds",
            arguments: [
                ("Europe/Berlin", 2026), ("America/New_York", 2026), ("Australia/Lord_Howe", 2026),
                ("America/Sao_Paulo", 2018), ("Asia/Kathmandu", 2026), ("Pacific/Apia", 2011),
                ("Africa/Casablanca", 2026),
                ("America/St_Johns", 2010), ("Asia/Tehran", 2020), ("GMT", 2026),
            ])
        func allZones(name: String, year: Int) throws {
            let zone = try zone(name)
            let lines: [(String, minutes: Set<Int>, hours: Set<Int>, days: Set<Int>)] = [
                ("30 2 * * *", [30], [2], Set(1...31)), ("15 0 * * *", [15], [0], Set(1...31)),
                ("59 23 * * *", [59], [23], Set(1...31)), ("*/20 1-3 * * *", [0, 20, 40], [1, 2, 3], Set(1...31)),
                ("0 */2 * * *", [0], Set(stride(from: 0, to: 24, by: 2)), Set(1...31)),
                ("45 * * * *", [45], Set(0...23), Set(1...31)), ("1 * 1-15 * *", [1], Set(0...23), Set(1...15)),
                ("0 0 */3 * *", [0], [0], Set(stride(from: 1, through: 31, by: 3))),
            ]
            var changes: [Int] = [try moment("\(year)-01-01T00:00:00Z") / 1000]
            for _ in 0..<3 {
                let last = Date(timeIntervalSince1970: Double(changes.last!) + 1)
                guard let change = zone.nextDaylightSavingTimeTransition(after: last) else { break }
                changes.append(Int(change.timeIntervalSince1970))
            }
            for change in changes {
                for (line, minutes, hours, days) in lines {
                    let recurrence = try Recurrence.cron(line, in: zone)
                    let slow = SlowCron(minutes: minutes, hours: hours, days: days, zone: zone)
                    let start = change / 3600 * 3600 - 3 * 86_400
                    let expected = slow.occurrences(from: start, days: 6).filter { $0 > start + 86_400 }
                    guard let first = expected.first else { continue }
                    var found = [first]
                    while found.count < expected.count, let next = recurrence.next(after: found.last! * 1000) {
                        found.append(next / 1000)
                    }
                    #expect(
                        found.map { text($0 * 1000) } == expected.map { text($0 * 1000) },
                        "\(line) \(name) at \(change)")
                    // From any moment between.
                    for (index, moment) in expected.enumerated().dropFirst() {
                        for before in [moment * 1000 - 1, expected[index - 1] * 1000 + 1] {
                            #expect(recurrence.next(after: before) == moment * 1000)
                        }
                    }
                }
            }
        }

        @Test("days of the month, months and days of the week are found years ahead")
        func dates() throws {
            let gmt = try zone("GMT")
            for (line, after, next) in [
                ("0 12 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T12:00:00Z"),
                ("0 0 * * mon", "2026-11-29T00:00:00Z", "2026-11-30T00:00:00Z"),
                ("0 0 * * 7", "2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"),
                ("0 0 * * 5-7", "2026-11-28T00:00:00Z", "2026-11-29T00:00:00Z"),
                // One of both days.
                ("0 0 13 * fri", "2026-11-28T00:00:00Z", "2026-12-04T00:00:00Z"),
                ("0 0 13 * fri", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z"),
                // Both days.
                ("0 0 */2 * fri", "2026-11-28T00:00:00Z", "2026-12-11T00:00:00Z"),
                ("5/20 4 1 JAN *", "2026-11-28T00:00:00Z", "2027-01-01T04:05:00Z"),
                ("5/20 4 1 jan *", "2027-01-01T04:05:00Z", "2027-01-01T04:25:00Z"),
                ("@yearly", "2026-11-28T00:00:00Z", "2027-01-01T00:00:00Z"),
                ("@weekly", "2026-11-28T00:00:00Z", "2026-11-29T00:00:00Z"),
                ("@hourly", "2026-11-28T00:00:00Z", "2026-11-28T01:00:00Z"),
            ] {
                let recurrence = try Recurrence.cron(line, in: gmt)
                #expect(recurrence.next(after: try moment(after)).map(text) == next, "\(line) after \(after)")
            }
        }

        @Test(
            "what is not a cron expression is refused",
            arguments: [
                "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *",
                "* * * * 8", "*/0 * * * *", "5-1 * * * *", "1,,2 * * * *", "-1 * * * *", "+1 * * * *", "1/2/3 * * * *",
                "a * * * *", "* * * jann *", "0 0 30 2 *", "0 0 31 apr *", "@never", "１ * * * *", "1-2-3 * * * *",
            ])
        func wrong(line: String) throws {
            let gmt = try zone("GMT")
            let error = #expect(throws: QueueListenError.self) { try Recurrence.cron(line, in: gmt) }
            #expect(error?.code == .invalidArgument)
        }

        @Test("intervals have the same times in all processes, from 1970 or from a start")
        func intervals() throws {
            let minute = try Recurrence.every(.seconds(60))
            #expect(minute.next(after: 0) == 60_000)
            #expect(minute.next(after: 59_999) == 60_000)
            #expect(minute.next(after: 60_000) == 120_000)
            let start = Date(timeIntervalSince1970: 1000.5)
            let later = try Recurrence.every(.seconds(7), from: start)
            #expect(later.next(after: 0) == 1_000_500)
            #expect(later.next(after: 1_000_500) == 1_007_500)
            for interval in [Duration.milliseconds(999), .zero, .seconds(-1), .seconds(3651 * 86_400)] {
                #expect(throws: QueueListenError.self) { try Recurrence.every(interval) }
            }
            #expect(throws: QueueListenError.self) { try Recurrence.every(.seconds(1), from: .distantPast) }
            #expect(later.next(after: SendTime.maxMilliseconds) == nil)
        }

        @Test("a rule is the same after it was stored, and one that is unknown here is refused")
        func stored() throws {
            let recurrences = [
                try Recurrence.every(.milliseconds(1500)),
                try Recurrence.every(.seconds(60), from: Date(timeIntervalSince1970: 5)),
                try Recurrence.cron("  */5   1-3 * * mon-fri ", in: try zone("America/Argentina/Buenos_Aires")),
                try Recurrence.cron("@daily", in: try #require(TimeZone(secondsFromGMT: 5400))),
            ]
            for recurrence in recurrences {
                for missed in [MissedOccurrence.sendOnce, .skip(after: .zero), .skip(after: .seconds(28 * 86_400))] {
                    let rule = try RecurrenceRule(recurrence, missed)
                    #expect(try RecurrenceRule(text: rule.text) == rule, "\(rule.text)")
                }
            }
            for lateness in [Duration.milliseconds(-1), .seconds(28 * 86_400 + 1)] {
                #expect(throws: QueueListenError.self) { try RecurrenceRule(recurrences[0], .skip(after: lateness)) }
            }
            for text in [
                "", "once", "once every", "once every 0 0", "once cron Nowhere/City * * * * *", "once moon GMT full",
            ] {
                #expect(throws: QueueListenError.self) { try RecurrenceRule(text: text) }
            }
        }
    }
}
