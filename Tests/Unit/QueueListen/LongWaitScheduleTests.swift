import Testing

@testable import CoordinationBase

extension QueueListenTests {
    @Suite("Reports of long waits")
    struct LongWaitScheduleTests {
        @Test("a call is reported in its second round, after a minute, and then every ten minutes")
        func rarely() {
            var schedule = LongWaitSchedule()
            var rounds: [Int] = []
            // The call with id 7 begins before the first round ends; others begin and end all the time.
            for round in 1...480 {
                let isDue = schedule.nextRound(newest: UInt64(7 + (round - 1) * 1000))
                if isDue(7) { rounds.append(round) }
            }
            #expect(rounds == [2, 13, 120, 240, 360, 480])
        }

        @Test("each of ten thousand calls is reported once in its first minute, whenever it began")
        func once() {
            var schedule = LongWaitSchedule()
            var reports: [UInt64: Int] = [:]
            for round in 1...12 {
                let newest = UInt64(min(round, 10) * 1000)
                let isDue = schedule.nextRound(newest: newest)
                for id in 1...newest where isDue(id) { reports[id, default: 0] += 1 }
            }
            #expect(reports.count == 10_000 && reports.values.allSatisfy { $0 == 1 })
        }
    }
}
