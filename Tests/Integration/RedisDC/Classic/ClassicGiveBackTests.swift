import CoordinationBase
import Foundation
import Hiredis
import Synchronization
import TestSupport
import Testing

@testable import RedisDC

/// A client whose scripts' replies are lost, or that is not connected, until a time.
private final class OutageRedis: RedisDecorator {
    let redis: RedisClient
    private let runs: Bool
    private let end: Duration
    private let now = Mutex(Duration.zero)
    private let markers: String

    /// - Parameters:
    ///   - runs: whether the scripts run before `end`.
    ///   - markers: the pattern of the keys that expire after ``ClassicKeys/markerSeconds``.
    init(_ redis: RedisClient, runs: Bool, until end: Duration, markers: String) {
        (self.redis, self.runs, self.end, self.markers) = (redis, runs, end, markers)
    }

    /// A clock on which each pause lasts a minute.
    var clock: MonotonicClock {
        MonotonicClock(
            now: { self.now.withLock { $0 } },
            sleep: { _ in
                let now = self.now.withLock { now in
                    now += .seconds(60)
                    return now
                }
                guard now == .seconds(ClassicKeys.markerSeconds) else { return }
                for key in try await self.redis.send("KEYS", .string(self.markers)).array ?? [] {
                    _ = try await self.redis.send("DEL", .string(key.string ?? ""))
                }
            })
    }

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        guard now.withLock({ $0 }) < end else {
            return try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
        }
        if runs { _ = try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout) }
        throw RedisError(runs ? .connectionLost : .cannotConnect, "", mayHaveRun: runs)
    }
}

extension ClassicSemaphoreTests {
    @Suite("Permits that are given back")
    struct GiveBack {
        @Test(
            "a permit is given back once, whether the replies are lost for longer than the marker lasts or nothing is sent",
            arguments: [true, false])
        func once(runs: Bool) async throws {
            try await withServer { _, redis, other in
                let semaphore = try ClassicSemaphore("s", redis: other)
                try await semaphore.create(permits: 1)
                try await semaphore.wait()
                let outage = OutageRedis(
                    redis, runs: runs, until: .seconds(2 * ClassicKeys.markerSeconds), markers: "rdc:sem-back:*")
                let giveBack = ClassicGiveBack(
                    redis: outage, keys: ClassicKeys("s", namespace: nil), clock: outage.clock)
                await giveBack.giveBack(Array("1".utf8))
                #expect(try await semaphore.value == 1)
            }
        }
    }
}
