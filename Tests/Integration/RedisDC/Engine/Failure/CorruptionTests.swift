// Another program, or an operator's mistake, destroys what is stored.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests.FailureTests {
    @Test(
        "whatever is destroyed in the state, every process goes on, sweeps what is dead, and grants what is new",
        .timeLimit(.minutes(5)), arguments: testSeeds(0..<6))
    func corruption(seed: UInt64) async throws {
        var generator = SplitMix(seed: seed)
        try await withCoordinators(configuration: shortTTL) { _, one, two, redis in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, node) in [one, two, one, two].enumerated() {
                    let seed = seed &* 31 &+ UInt64(number)
                    group.addTask { await useEverything(node, seed) }
                }
                for _ in 0..<150 {
                    try await corrupt(redis, &generator)
                    try await Task.sleep(for: .milliseconds(Int.random(in: 0...10, using: &generator)))
                }
                group.cancelAll()
            }
            // Until then, requests for leases fail.
            try await until("a heartbeat has repaired the clock, seed \(seed)") {
                try await redis.send("HSTRLEN", stateKey, "clock").integer == 8
            }
            // New names work, and what a process holds that dies now is swept.
            let dying = try await ForeignNode(redis)
            _ = try await dying.request("acquire", "new", ["mf", "1", "m"])
            try await dying.expire()
            for node in [one, two] {
                do {
                    let lease = try await node.mutex("new").lock(timeout: .seconds(60))
                    #expect(lease.isHeld, "seed \(seed)")
                    try await lease.release()
                } catch {
                    // The records that the sweep has left, and the sessions that could have swept them.
                    let sessions = try await redis.send("ZRANGE", sessionsKey, 0, -1, "WITHSCORES")
                    let state = try await redis.send("HGETALL", stateKey)
                    let time = try await redis.send("TIME")
                    Issue.record("seed \(seed), dead \(dying.session), time \(time), \(sessions), \(state)")
                    throw error
                }
            }
            try await until("dead sessions are swept, and no other work is left, seed \(seed)") {
                try await redis.send("ZRANGE", sessionsKey, 0, -1).array?.compactMap(\.string).contains(dying.session)
                    == false
            }
        }
    }

    @Test(
        "a damaged record of a slot fails no later request",
        arguments: [
            [], Array("x".utf8), [UInt8](repeating: 0, count: 60), [UInt8](repeating: 0xFF, count: 60),
            Array("h".utf8) + [UInt8](repeating: 0x7F, count: 59),
            Array("q".utf8) + [UInt8](repeating: 0x7F, count: 59),
            Array("d".utf8) + [UInt8](repeating: 0x7F, count: 59),
        ] as [[UInt8]])
    func damagedSlot(record: [UInt8]) async throws {
        try await withCoordinators { _, one, _, redis in
            let (mutex, semaphore) = (try one.mutex("m"), try one.semaphore("s", permits: 0))
            for count in 1...3 {
                try await mutex.withLock(timeout: .seconds(60)) { _ in }
                try await semaphore.signal()
                #expect(try await semaphore.value == count)
                let fields = try await redis.send("HKEYS", stateKey).array?.compactMap(\.bytes) ?? []
                let slots = fields.filter { $0.starts(with: "c:".utf8) }
                try #require(!slots.isEmpty)
                for slot in slots { _ = try await redis.send("HSET", stateKey, .bytes(slot), .bytes(record)) }
            }
        }
    }
}

private let stateKey: RedisArgument = "rdc:{default:0}:book"
private let indexKey: RedisArgument = "rdc:{default:0}:index"
private let sessionsKey: RedisArgument = "rdc:{default:0}:sessions"

/// Uses several kinds of resources until the task is cancelled. Errors are expected.
private func useEverything(_ node: Coordinator, _ seed: UInt64) async {
    var generator = SplitMix(seed: seed)
    let short = Duration.milliseconds(50)
    while !Task.isCancelled {
        tally(.operation)
        do {
            let name = "r\(Int.random(in: 0..<3, using: &generator))"
            switch Int.random(in: 0..<7, using: &generator) {
            case 0: try await node.mutex("m-\(name)").withLock(timeout: short) { _ in }
            case 1: try await node.semaphore("s-\(name)", permits: 2).withPermits(1, timeout: short) { _ in }
            case 2:
                try await node.semaphore("c-\(name)", permits: 0).signal()
                try await node.semaphore("c-\(name)", permits: 0).wait(timeout: short)
            case 3: try await node.readWriteLock("rw-\(name)").withReadLock(timeout: short) { _ in }
            case 4: try await node.barrier("b-\(name)", parties: 2).arriveAndWait(timeout: short)
            case 5:
                let buffer = try node.boundedBuffer("q-\(name)", of: Int.self, capacity: 2)
                try await buffer.put(1, timeout: short)
                _ = try await buffer.take(timeout: short)
            default: _ = try await node.latch("l-\(name)", count: 3).countDown(id: "\(seed)")
            }
        } catch {}
    }
}

/// Destroys one thing.
private func corrupt(_ redis: RedisClient, _ generator: inout SplitMix) async throws {
    tally(.fault)
    let garbage: [[UInt8]] = [
        [], Array("x".utf8), Array("h".utf8) + [UInt8](repeating: 0xFF, count: 23), [UInt8](repeating: 0, count: 24),
        Array("mfp".utf8) + (0..<7).flatMap { _ in [0, 0, 0, 0, 0, 0, 0xF0, 0x7F] as [UInt8] },
        (0..<60).map { _ in UInt8.random(in: 0...255, using: &generator) },
    ]
    let value = RedisArgument.bytes(garbage.randomElement(using: &generator)!)
    switch Int.random(in: 0..<20, using: &generator) {
    case 0: _ = try await redis.send("DEL", sessionsKey)
    case 1: _ = try await redis.send("DEL", indexKey)
    case 2: _ = try await redis.send("HDEL", stateKey, "clock")
    case 3: _ = try await redis.send("HSET", stateKey, "clock", value)
    case 4:
        let letter = "qhdtguv".randomElement(using: &generator)!
        _ = try await redis.send("ZADD", indexKey, 0, .string("\(letter)m-r0\0rubbish"))
    case 5: _ = try await redis.send("ZADD", sessionsKey, 1, "rubbish")
    case 6: _ = try await redis.send("PUBLISH", "rdc:{default:0}:wake:rubbish", value)
    default:
        let fields = try await redis.send("HKEYS", stateKey).array?.compactMap(\.bytes) ?? []
        guard let field = fields.randomElement(using: &generator) else { return }
        // The layout and the epoch decide whether a session may join at all.
        guard field.count > 2, field[1] == UInt8(ascii: ":") else { return }
        if Bool.random(using: &generator) {
            _ = try await redis.send("HDEL", stateKey, .bytes(field))
        } else {
            _ = try await redis.send("HSET", stateKey, .bytes(field), value)
        }
    }
}
