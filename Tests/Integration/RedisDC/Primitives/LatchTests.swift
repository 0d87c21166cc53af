import Hiredis
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

/// Lets the session of the first participant end as soon as it is registered: the reply is lost, and the connection for
/// the next attempt comes after others have swept the session.
private final class EndingSession: RedisDecorator {
    let redis: RedisClient
    private let count = Atomic(0)
    private let failures = Atomic(0)

    init(_ redis: RedisClient) { self.redis = redis }

    /// The number of registrations that were sent.
    var registrations: Int { count.load(ordering: .relaxed) }

    /// Whether the first registration has failed.
    var hasFailed: Bool { failures.load(ordering: .relaxed) > 0 }

    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        guard script.source == Scripts.participate.source,
            count.add(1, ordering: .relaxed).newValue == 1, case .string(let slot) = arguments[0]
        else {
            return redis.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion)
        }
        redis.post(script, keys: keys, arguments: arguments, timeout: timeout) { [self] _ in
            Task {
                defer { self.failures.add(1, ordering: .relaxed) }
                let session = String(slot.split(separator: ":")[1])
                do {
                    try await ForeignNode.setExpiry(of: session, 0, redis)
                    try await until("the session is swept") {
                        try await redis.send("HGET", .string(keys[0]), .string("s:" + session)).bytes == nil
                    }
                } catch {
                    Issue.record(error)
                }
                let lost = RedisError(.connectionLost, "the connection was lost", mayHaveRun: true)
                redis.execute { completion(.failure(lost)) }
            }
        }
    }
}

extension PrimitiveTests {
    @Suite("Latch", .serialized)
    struct LatchTests {
        @Test("a latch opens when it has been counted down, for current and later waiters")
        func opens() async throws {
            try await withCoordinators { _, one, two, redis in
                let latch = try one.latch("l", count: 3)
                let other = try two.latch("l", count: 3)
                let waiting = (0..<200).map { _ in Task { try await other.wait(timeout: .seconds(60)) } }
                try await until("all wait") { try await one.inspect("l")?.waiterCount == 200 }
                #expect(try await latch.countDown() == 2)
                #expect(try await other.countDown() == 1)
                #expect(await errorOf { try await latch.wait(timeout: .zero) }?.code == .timedOut)
                #expect(try await latch.remaining == 1)
                #expect(try await latch.countDown() == 0)
                for task in waiting { try await task.value }
                try await latch.wait(timeout: .zero)
                #expect(try await latch.countDown() == 0)
                try await latch.wait(timeout: .zero)
                try await Audit(redis).check()
            }
        }

        @Test("an id counts once, from whichever node it comes")
        func ids() async throws {
            try await withCoordinators { _, one, two, redis in
                let latch = try one.latch("l", count: 2)
                for coordinator in [one, two, one] {
                    #expect(try await coordinator.latch("l", count: 2).countDown(id: "shard-1") == 1)
                }
                #expect(try await latch.countDown(id: "shard-2") == 0)
                try await latch.wait(timeout: .zero)
                // A new latch of the same name is unaffected.
                #expect(try await latch.destroy())
                #expect(try await Audit(redis).lines.isEmpty)
                #expect(try await latch.countDown(id: "shard-1") == 1)
            }
        }

        @Test("a latch with a count of 0 is open")
        func zero() async throws {
            try await withCoordinators { _, one, _, _ in try await one.latch("l", count: 0).wait(timeout: .zero) }
        }

        @Test("the end of a participation counts down, also when its body throws")
        func participation() async throws {
            try await withCoordinators { _, one, two, redis in
                let latch = try one.latch("l", count: 2)
                try await latch.withParticipation { _ in
                    let down = try await two.inspect("l")?.signalled
                    #expect(down == 0)
                }
                struct Failed: Error {}
                await #expect(throws: Failed.self) { try await latch.withParticipation { _ in throw Failed() } }
                try await latch.wait(timeout: .seconds(60))
                try await Audit(redis).check()
            }
        }

        @Test("a body that does not use the participation counts down when it returns or throws")
        func bodyWithoutParticipation() async throws {
            try await withCoordinators { _, one, two, _ in
                let latch = try one.latch("l", count: 2)
                let down = try await latch.withParticipation { try await two.inspect("l")?.signalled }
                #expect(down == 0)
                #expect(try await latch.remaining == 1)
                await #expect(throws: CancellationError.self) {
                    try await latch.withParticipation { throw CancellationError() }
                }
                try await two.latch("l", count: 2).wait(timeout: .zero)
            }
        }

        @Test("a participant whose session ended before the reply to its registration counts once")
        func lostRegistration() async throws {
            try await withServer { _, redis, observer in
                let ending = EndingSession(redis)
                try await withCoordinator(redis: observer, configuration: mediumTTL) { other in
                    try await withCoordinator(redis: ending, configuration: longTTL) { one in
                        let error = await errorOf {
                            try await one.latch("l", count: 2).withParticipation { _ in _ = Issue.record("it ran") }
                        }
                        // Its process learns of the end by the next attempt, or by a heartbeat before that.
                        #expect(error?.code == .lost && ending.registrations >= 1)
                    }
                    let latch = try other.latch("l", count: 2)
                    try await until("the dead participant has counted") { try await latch.remaining == 1 }
                    try await until("its session is swept, and the reply counts as lost") { ending.hasFailed }
                }
            }
        }

        @Test("destroying a latch wakes its waiters")
        func destroyed() async throws {
            try await withCoordinators { _, one, two, _ in
                let latch = try one.latch("l", count: 1)
                let waiting = Task { await errorOf { try await latch.wait() } }
                try await until("it waits") { try await two.inspect("l")?.waiterCount == 1 }
                #expect(try await two.latch("l", count: 1).destroy())
                #expect(await waiting.value?.code == .destroyed)
            }
        }
    }

    @Suite("Turnstile", .serialized)
    struct TurnstileTests {
        @Test("a turnstile passes as many as are admitted, in their order, and all while it is open")
        func passes() async throws {
            try await withCoordinators { _, one, two, redis in
                let gate = try one.turnstile("t", preloaded: 2)
                let other = try two.turnstile("t", preloaded: 2)
                try await gate.pass(timeout: .zero)
                try await other.pass(timeout: .zero)
                #expect(await errorOf { try await gate.pass(timeout: .zero) }?.code == .timedOut)
                let names = Names()
                var tasks: [Task<Void, any Error>] = []
                for number in 0..<10 {
                    tasks.append(
                        Task {
                            try await gate.pass()
                            await names.add("\(number)")
                        })
                    try await until("it waits") { try await two.inspect("t")?.waiterCount == number + 1 }
                }
                try await other.admit(1)
                try await until("one has passed") { await names.all == ["0"] }
                #expect(try await two.inspect("t")?.waiterCount == 9)
                try await other.unlock()
                for task in tasks { try await task.value }
                for _ in 0..<300 { try await gate.pass(timeout: .zero) }
                try await gate.lock()
                #expect(await errorOf { try await other.pass(timeout: .zero) }?.code == .timedOut)
                // Unused passes are gone when the gate is locked.
                try await gate.admit(5)
                try await gate.lock()
                #expect(await errorOf { try await other.pass(timeout: .zero) }?.code == .timedOut)
                try await Audit(redis).check()
                #expect(try await gate.destroy())
            }
        }
    }
}
