// Operations that run out of time because there is no server, and what their errors say.
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests.FailureTests {
    /// An operation of a new user's program, and how it fails.
    struct Unanswered: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var code: RedisDCError.Code
        var operation: @Sendable (Coordinator, RedisClient) async throws -> Void
    }

    static let unanswered = [
        Unanswered(testDescription: "a wait", code: .timedOut) { coordinator, _ in
            try await coordinator.semaphore("s", permits: 0).wait(timeout: .milliseconds(500))
        },
        Unanswered(testDescription: "a lock of a cohort", code: .timedOut) { coordinator, _ in
            _ = try await coordinator.mutex("m", locality: .cohort()).lock(timeout: .milliseconds(500))
        },
        Unanswered(testDescription: "a signal", code: .notConnected) { coordinator, _ in
            try await coordinator.semaphore("s", permits: 0).signal()
        },
        Unanswered(testDescription: "a classic wait", code: .timedOut) { _, redis in
            try await ClassicSemaphore("c", redis: redis).wait(timeout: .milliseconds(500))
        },
    ]

    @Test("an operation that runs out of time says why there is no connection", arguments: unanswered)
    func unreachable(_ case: Unanswered) async throws {
        let url = try await withLocalRedis { $0.url }
        var configuration = longTTL
        configuration.callTimeout = .milliseconds(500)
        try await withTestClient(url: url) { redis in
            try await withCoordinator(redis: redis, configuration: configuration) { coordinator in
                // The reason is known after the first attempt to connect.
                try await until("the error names the reason") {
                    let error = await errorOf { try await `case`.operation(coordinator, redis) }
                    #expect(error?.code == `case`.code && error?.mayHaveRun == false)
                    return error?.message.contains("Connection refused") == true
                        && (error?.underlying as? RedisError)?.code == .cannotConnect
                }
            }
        }
    }

    @Test("an operation of a client whose run() is not running says so")
    func notRunning() async throws {
        let redis = try RedisClient(RedisConfiguration(url: "redis://127.0.0.1:6379"))
        try await withCoordinator(redis: redis) { coordinator in
            let error = await errorOf {
                try await coordinator.semaphore("s", permits: 0).wait(timeout: .milliseconds(50))
            }
            #expect(error?.code == .timedOut)
            #expect(error?.message.contains("run() is not running") == true, "\(error as Any)")
        }
    }
}
