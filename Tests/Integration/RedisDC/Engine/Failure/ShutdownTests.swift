// Shutdowns that Redis does not hear completely.
import Hiredis
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

/// A client whose connection loses the requests of a shutdown, except the end of the session.
private final class BrokenShutdown: RedisDecorator {
    let redis: RedisClient

    init(_ redis: RedisClient) { self.redis = redis }

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        guard [Scripts.join.source, Scripts.leave.source].contains(script.source) else {
            throw RedisError(.connectionLost, "the connection was lost", mayHaveRun: true)
        }
        return try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }
}

extension EngineTests.FailureTests {
    @Test("leases that a shutdown could not release are free long before the next heartbeat")
    func brokenShutdown() async throws {
        // A heartbeat every 3 hours.
        var configuration = CoordinatorConfiguration()
        configuration.ttl = .seconds(10 * 3600)
        try await withServer { _, redis, other in
            try await withCoordinator(redis: other, configuration: configuration) { two in
                try await two.mutex("other").withLock { _ in }
                let leases = try await withCoordinator(
                    redis: BrokenShutdown(redis), configuration: configuration
                ) { one in
                    var leases: [Lease] = []
                    for number in 0..<300 { leases.append(try await one.mutex("m\(number)").lock()) }
                    return leases
                }
                #expect(leases.allSatisfy { !$0.isHeld })
                for number in leases.indices {
                    try await two.mutex("m\(number)").lock(timeout: .seconds(60)).release()
                }
                let audit = try await Audit(other)
                audit.check()
                #expect(audit.claims.isEmpty)
            }
        }
    }
}
