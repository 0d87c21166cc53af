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

/// A client on whose connection the ends of arrivals take longer than those of registrations.
private final class SlowArrivals: RedisDecorator {
    let redis: RedisClient
    /// Whether the end of an arrival is lost.
    private let losesEnds: Bool

    init(_ redis: RedisClient, losesEnds: Bool) { (self.redis, self.losesEnds) = (redis, losesEnds) }

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        // The party registers in slot 0 of its session and arrives in slot 1.
        if script.source == Scripts.releaseParty.source, case .string(let slot)? = arguments.first, slot.hasSuffix(":1")
        {
            try? await Task.sleep(for: .milliseconds(300))
            if losesEnds { throw RedisError(.connectionLost, "the connection was lost", mayHaveRun: true) }
        }
        return try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }
}

extension EngineTests.FailureTests {
    @Test("a party whose process shuts down does not count in place of another one", arguments: [false, true])
    func shutdownOfParties(losesEnds: Bool) async throws {
        try await withServer { _, redis, other in
            try await withCoordinator(redis: other) { two in
                let phaser = try two.phaser("round")
                let (waiting, idle) = (try await phaser.register(), try await phaser.register())
                async let first = waiting.arriveAndWait()
                try await withCoordinator(redis: SlowArrivals(redis, losesEnds: losesEnds)) { one in
                    let party = try await one.phaser("round").register()
                    Task { try await party.arriveAndWait() }
                    try await until("both wait") { try await two.inspect("round")?.waiterCount == 2 }
                }
                try await until("the party is gone") { try await two.inspect("round")?.permits == 2 }
                #expect(try await two.inspect("round")?.waiterCount == 1)
                let second = try await idle.arriveAndWait(timeout: patience)
                let generations = [try await first.generation, second.generation]
                #expect(generations == [0, 0])
            }
        }
    }

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
