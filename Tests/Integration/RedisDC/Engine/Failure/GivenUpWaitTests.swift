import Hiredis
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

/// A client that can hold back the releases of waits, as a connection that is slow does.
private final class DelayedReleases: RedisDecorator {
    let redis: RedisClient
    /// The functions that send the releases; `nil` when they are not held back.
    private let held = Mutex<[@Sendable () -> Void]?>(nil)

    init(_ redis: RedisClient) { self.redis = redis }

    var heldCount: Int { held.withLock { $0?.count ?? 0 } }

    func holdBack() { held.withLock { $0 = [] } }

    func letThrough() {
        let all = held.withLock { held in
            defer { held = nil }
            return held ?? []
        }
        redis.execute { for send in all { send() } }
    }

    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        let send: @Sendable () -> Void = { [redis] in
            redis.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion)
        }
        let isHeld = held.withLock { held in
            guard held != nil, script.source == Scripts.release.source else { return false }
            held?.append(send)
            return true
        }
        if !isHeld { send() }
    }
}

extension EngineTests.FailureTests {
    @Test("8,000 waits that are granted after they were given up, and before Redis receives this, take no permit")
    func givenUpWaits() async throws {
        try await withServer { _, redis, observer in
            let delayed = DelayedReleases(redis)
            try await withCoordinator(redis: observer, configuration: longTTL) { other in
                try await withCoordinator(redis: delayed, configuration: longTTL) { one in
                    let semaphore = try one.semaphore("tickets", permits: 0)
                    try await semaphore.create()
                    let waits = (0..<8_000).map { _ in Task { try await semaphore.wait() } }
                    try await until("all wait") {
                        try await other.inspect("tickets", limit: 1)?.waiterCount == waits.count
                    }
                    delayed.holdBack()
                    for wait in waits { wait.cancel() }
                    // Without a reply, after the time for which a caller waits for it.
                    for wait in waits { #expect(await errorOf { try await wait.value }?.code == .cancelled) }
                    #expect(delayed.heldCount == waits.count)
                    try await other.semaphore("tickets", permits: 0).signal(waits.count)
                    try await until("all are granted") { try await Audit(observer).resources["tickets"]?.waiting == 0 }
                    // On a new connection the process compares its claims with Redis.
                    _ = try await observer.send("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                    try await until("no claim is left") { try await Audit(observer).claims.isEmpty }
                    for _ in 0..<2 {
                        let audit = try await Audit(observer)
                        audit.check()
                        #expect(audit.resources["tickets"]?.free == waits.count)
                        #expect(audit.resources["tickets"]?.consumed == 0)
                        // The releases find nothing. The next request follows them.
                        delayed.letThrough()
                        #expect(try await semaphore.create() == false)
                    }
                }
            }
        }
    }
}
