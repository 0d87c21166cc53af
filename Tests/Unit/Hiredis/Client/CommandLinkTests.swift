import Hiredis
import TestSupport
import Testing

@Suite("Waiting for a connection", .timeLimit(.minutes(5)))
struct CommandLinkTests {
    @Test("a call whose deadline passes before it can wait fails, instead of waiting forever")
    func passedDeadline() async throws {
        // It is not running, so there is never a connection.
        let redis = try RedisClient(RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: 1)))
        for nanoseconds in 0..<2000 {
            await #expect { _ = try await redis.send(["PING"], timeout: .nanoseconds(nanoseconds)) } throws: { error in
                (error as? RedisError)?.code == .timedOut
            }
        }
    }
}
