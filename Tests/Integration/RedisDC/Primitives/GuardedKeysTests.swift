import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import Hiredis
@testable import RedisDC
@testable import RedisDCTestSupport

/// A client whose next script waits until it is let through, as that of a process that is paused before it sends.
private final class PausedRedis: RedisDecorator {
    let redis: RedisClient
    private let (pauses, pausing) = AsyncStream.makeStream(of: Void.self)
    private let (ends, ending) = AsyncStream.makeStream(of: Void.self)

    init(_ redis: RedisClient) { self.redis = redis }

    func untilPaused() async { for await _ in pauses { return } }

    func goOn() { ending.yield() }

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        pausing.yield()
        for await _ in ends { break }
        return try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }
}

extension PrimitiveTests {
    @Suite("Guarded keys", .serialized)
    struct GuardedKeysTests {
        private static let append = GuardedScript(
            """
            redis.call('APPEND', KEYS[1], ARGV[1])
            return {#KEYS, #ARGV, redis.call('GET', KEYS[1])}
            """)

        /// The ways in which a late holder tries to change the key `k`.
        enum Use: CaseIterable {
            case set, delete, get, script

            func make(_ keys: GuardedKeys) async throws {
                switch self {
                case .set: try await keys.set("k", to: "late")
                case .delete: try await keys.delete("k")
                case .get: _ = try await keys.get("k")
                case .script: _ = try await keys.run(append, keys: ["k"], arguments: ["late"])
                }
            }
        }

        @Test(
            "a holder that is paused before its request is refused once the next holder has used the key",
            arguments: Use.allCases, [false, true])
        func paused(use: Use, onlyReads: Bool) async throws {
            try await withCoordinators { _, one, two, redis in
                let first = try await one.mutex("m").lock()
                try await first.guarded(redis).set("k", to: "first")
                let paused = PausedRedis(redis)
                // The lease is held when the process looks at it, and then the process is paused.
                let late = Task { await errorOf { try await use.make(first.guarded(paused)) } }
                await paused.untilPaused()
                #expect(try await two.mutex("m").forceRelease())
                let second = try await two.mutex("m").lock()
                #expect(second.fence > first.fence)
                let keys = second.guarded(redis)
                if onlyReads {
                    #expect(try await keys.get("k").string == "first")
                } else {
                    try await keys.set("k", to: "second")
                }
                paused.goOn()
                let error = await late.value
                #expect(error?.code == .lost && error?.mayHaveRun == false)
                #expect(try await redis.send("GET", "k").string == (onlyReads ? "first" : "second"))
                // The holder goes on.
                try await keys.set("k", to: "again")
                #expect(try await keys.get("k").string == "again")
            }
        }

        @Test("without a later holder's use of the key, the request of a paused holder is carried out")
        func unused() async throws {
            try await withCoordinators { _, one, two, redis in
                let first = try await one.mutex("m").lock()
                let paused = PausedRedis(redis)
                let late = Task { await errorOf { try await first.guarded(paused).set("k", to: "late") } }
                await paused.untilPaused()
                #expect(try await two.mutex("m").forceRelease())
                let second = try await two.mutex("m").lock()
                paused.goOn()
                #expect(await late.value == nil)
                #expect(try await second.guarded(redis).get("k").string == "late")
            }
        }

        @Test("a holder that knows that its lease is lost sends nothing")
        func lost() async throws {
            try await withCoordinators { _, one, two, redis in
                let lease = try await one.mutex("m").lock()
                #expect(try await two.mutex("m").forceRelease())
                try await until("the holder knows") { !lease.isHeld }
                let error = await errorOf { try await lease.guarded(redis).set("k", to: "late") }
                #expect(error?.code == .lost)
                #expect(try await redis.send("EXISTS", "k", "rdc:fence:{k}").integer == 0)
            }
        }

        @Test("a key belongs to one lock, whatever the fences are")
        func otherLock() async throws {
            try await withCoordinators { _, one, _, redis in
                let (lease, other) = (try await one.mutex("m").lock(), try await one.mutex("other").lock())
                try await lease.guarded(redis).set("k", to: "value")
                for use in Use.allCases {
                    let error = await errorOf { try await use.make(other.guarded(redis)) }
                    #expect(error?.code == .conflict)
                }
                #expect(try await redis.send("GET", "k").string == "value")
            }
        }

        @Test("a key is set, with a time to live too, read, and deleted; its fence stays for seven days")
        func uses() async throws {
            try await withCoordinators { _, one, _, redis in
                let lease = try await one.mutex("m").lock()
                let keys = lease.guarded(redis)
                #expect(try await keys.get("{a}k") == .null)
                try await keys.set("{a}k", to: .bytes([0, 255, 10]))
                #expect(try await keys.get("{a}k").bytes == [0, 255, 10])
                #expect(try await redis.send("TTL", "{a}k").integer == -1)
                try await keys.set("{a}k", to: 7, ttl: .seconds(100))
                #expect(try await (1...100).contains(redis.send("TTL", "{a}k").integer ?? 0))
                try await keys.delete("{a}k")
                #expect(try await redis.send("EXISTS", "{a}k").integer == 0)
                #expect(try await redis.send("GET", "rdc:fence:{a}:{a}k").string == "\(lease.fence) \(one.namespace):m")
                let ttl = try await redis.send("TTL", "rdc:fence:{a}:{a}k").integer ?? 0
                #expect((604_000...604_800).contains(ttl))
                try await redis.send("LPUSH", "list", "x")
                #expect(await errorOf { _ = try await keys.get("list") }?.code == .wrongType)
            }
        }

        @Test("a script sees its keys and arguments alone")
        func script() async throws {
            try await withCoordinators { _, one, _, redis in
                let keys = try await one.mutex("m").lock().guarded(redis)
                let reply = try await keys.run(Self.append, keys: ["{a}1", "{a}2"], arguments: ["x", "y"])
                #expect(reply.array?.map(\.integer).prefix(2) == [2, 2] && reply.array?.last?.string == "x")
                #expect(try await redis.send("EXISTS", "rdc:fence:{a}:{a}1", "rdc:fence:{a}:{a}2").integer == 2)
                let nothing = try await keys.run(GuardedScript("local x = 1"), keys: ["k"])
                #expect(nothing == .null)
                let error = await errorOf { _ = try await keys.run(GuardedScript("error('own')"), keys: ["k"]) }
                #expect(error?.code == .serverError && error?.message.contains("own") == true)
            }
        }

        @Test(
            "a fence is in the slot of its key",
            arguments: ["k", "{a}", "a{b}c", "{}{a}", "a{b", "{a}{b}", "ü{é}", "a{{b}}"])
        func slots(key: String) throws {
            if let fenceKey = try? GuardedKeys.fenceKey(key) {
                #expect(HashSlot.of(fenceKey) == HashSlot.of(key), "\(fenceKey)")
            } else {
                #expect(key == "{}{a}")
            }
        }

        @Test("what cannot be guarded is refused before anything is sent")
        func refused() async throws {
            try await withCoordinators { _, one, _, redis in
                let keys = try await one.mutex("m").lock().guarded(redis)
                let append = Self.append
                let many = (0..<65).map { "{a}\($0)" }
                for attempt: @Sendable () async throws -> Void in [
                    { try await keys.set("", to: "x") }, { try await keys.set("a}b", to: "x") },
                    { try await keys.set("k", to: "x", ttl: .zero) },
                    { _ = try await keys.run(append, keys: []) }, { _ = try await keys.run(append, keys: many) },
                ] { #expect(await errorOf(attempt)?.code == .invalidArgument) }
                #expect(try await redis.send("EXISTS", "k", "", "a}b").integer == 0)
            }
        }
    }
}
