#if LoggingSupport
    import Hiredis
    import Logging
    import RedisDCTesting
    import TestSupport
    import Testing

    @testable import QueueListen

    extension QueueListenTests {
        @Suite("Long waits of readers", .serialized)
        struct LongWaitTests {
            @Test("messages() without a connection logs why it waits, and in an empty mailbox it logs nothing")
            func noConnection() async throws {
                let (log, time) = (CapturedLog(), ManualClock())
                var configuration = PostOfficeConfiguration()
                configuration.instruments.logger = Logger(label: "test") { _ in log }
                func reasons() -> [String] {
                    log.lines.compactMap { line in line.metadata["queuelisten_reason"].map { "\(line.level) \($0)" } }
                }
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
                    #expect(reasons().isEmpty)
                    await server.stop()
                    try await until("it is logged") {
                        time.advance(by: .seconds(1))
                        return reasons().contains {
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
