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

#if LoggingSupport
    import Hiredis
    import Logging
    import RedisDCTesting
    import TestSupport

    @testable import QueueListen

    extension QueueListenTests {
        @Suite("Long waits of readers", .serialized)
        struct LongWaitTests {
            private final class Reasons: LogHandler {
                private let kept = Locked<[String]>([])
                var all: [String] { kept.withLock { $0 } }

                func log(event: LogEvent) {
                    guard let reason = event.metadata?["queuelisten_reason"] else { return }
                    kept.withLock { $0.append("\(event.level) \(reason)") }
                }

                subscript(metadataKey _: String) -> Logger.Metadata.Value? {
                    get { nil }
                    set {}
                }
                var metadata: Logger.Metadata {
                    get { [:] }
                    set {}
                }
                var logLevel: Logger.Level {
                    get { .trace }
                    set {}
                }
            }

            @Test("messages() without a connection logs why it waits, and in an empty mailbox it logs nothing")
            func noConnection() async throws {
                let (log, time) = (Reasons(), ManualClock())
                var configuration = PostOfficeConfiguration()
                configuration.instruments.logger = Logger(label: "test") { _ in log }
                try await withServer { server, redis, _ in
                    let office = try PostOffice(
                        redis: redis, namespace: "default", configuration: configuration, clock: time.clock)
                    let reading = Task {
                        for try await _ in try office.mailbox("alice").messages(device: "phone") {}
                    }
                    try await until("the reader waits") {
                        try await office.mailbox("alice").listeners.waitingCount == 1
                    }
                    for _ in 0..<20 {
                        time.advance(by: .seconds(1))
                        try await Task.sleep(for: .milliseconds(1))
                    }
                    #expect(log.all.isEmpty)
                    await server.stop()
                    try await until("it is logged") {
                        time.advance(by: .seconds(1))
                        return log.all.contains {
                            $0.hasPrefix("warning there is no connection to Redis") && $0.contains("refused")
                        }
                    }
                    reading.cancel()
                    _ = await reading.result
                }
            }
        }
    }
#endif
