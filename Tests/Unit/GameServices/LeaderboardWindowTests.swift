import Foundation
import TestRandom
import TestSupport
import Testing

@testable import GameServices

extension GameServicesTests {
    @Suite("The windows of leaderboards")
    struct LeaderboardWindowTests {
        private static func microseconds(_ text: String) -> Int {
            // swift-format-ignore: NeverUseForceTry
            Int(try! Date(text, strategy: .iso8601).timeIntervalSince1970) * 1_000_000
        }

        @Test("days, weeks and months are those of Foundation's ISO calendar in UTC")
        func calendar() {
            var calendar = Calendar(identifier: .iso8601)
            calendar.timeZone = TimeZone(identifier: "UTC")!
            let seed = testSeed()
            var generator = SplitMix(seed: seed)
            for _ in 0..<3000 {
                let time = Int.random(in: 0..<8_000_000_000_000_000, using: &generator)
                let date = Date(timeIntervalSince1970: Double(time / 1_000_000))
                let expected: [(LeaderboardWindow, Calendar.Component)] = [
                    (.daily, .day), (.weekly, .weekOfYear), (.monthly, .month),
                ]
                for (window, component) in expected {
                    let interval = calendar.dateInterval(of: component, for: date)!
                    let period = window.period(at: time)
                    #expect(period.start == Int(interval.start.timeIntervalSince1970) * 1_000_000, "seed \(seed)")
                    #expect(period.end == Int(interval.end.timeIntervalSince1970) * 1_000_000, "seed \(seed)")
                }
                let parts = calendar.dateComponents(
                    [.year, .month, .day, .weekOfYear, .yearForWeekOfYear], from: date)
                func two(_ number: Int?) -> String { number! < 10 ? "0\(number!)" : "\(number!)" }
                let month = "\(parts.year!)-\(two(parts.month))"
                #expect(LeaderboardWindow.daily.period(at: time).id == "daily:\(month)-\(two(parts.day))")
                #expect(LeaderboardWindow.monthly.period(at: time).id == "monthly:\(month)")
                let week = "\(parts.yearForWeekOfYear!)-W\(two(parts.weekOfYear))"
                #expect(LeaderboardWindow.weekly.period(at: time).id == "weekly:\(week)")
            }
        }

        @Test(
            "a period ends where the next one begins",
            arguments: [LeaderboardWindow.daily, .weekly, .monthly, .every(.milliseconds(100))])
        func borders(window: LeaderboardWindow) {
            var period = window.period(at: Self.microseconds("2023-12-20T12:00:00Z"))
            for _ in 0..<800 {
                let next = window.period(at: period.end!)
                #expect(next.start == period.end)
                #expect(window.period(at: next.start - 1) == period)
                #expect(window.period(at: next.start, ago: 1) == period)
                period = next
            }
        }

        @Test(
            "a period is found by its id before and after a time, and not further away than asked",
            arguments: [LeaderboardWindow.allTime, .daily, .weekly, .monthly, .every(.milliseconds(100))])
        func byID(window: LeaderboardWindow) {
            let time = Self.microseconds("2023-12-20T12:00:00Z")
            for count in -50...50 {
                let period = window.period(at: time, ago: count)
                let distance = max(period.start - time, time - (period.end ?? time), 0)
                #expect(window.period(id: period.id, near: time, within: distance + 1) == period)
                if count.magnitude > 2, period.end != nil {
                    #expect(window.period(id: period.id, near: time, within: distance / 2) == nil)
                }
            }
        }

        @Test("a week belongs to the year of its Thursday")
        func weeks() {
            func id(_ day: String) -> String {
                LeaderboardWindow.weekly.period(at: Self.microseconds(day + "T00:00:00Z")).id
            }
            #expect(id("2020-12-31") == "weekly:2020-W53")
            #expect(id("2021-01-03") == "weekly:2020-W53")
            #expect(id("2021-01-04") == "weekly:2021-W01")
            #expect(id("2024-12-30") == "weekly:2025-W01")
        }

        @Test("a description names its window")
        func descriptions() {
            for window in [LeaderboardWindow.allTime, .daily, .weekly, .monthly] {
                #expect(LeaderboardWindow(window.description) == window)
            }
            #expect(LeaderboardWindow("yearly") == nil)
        }
    }
}
