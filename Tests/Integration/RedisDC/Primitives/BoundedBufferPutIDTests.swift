// Puts with an id, which have one effect however often they are repeated.
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests.BoundedBufferTests {
    @Test("a put with an id has one effect, from whichever process it is repeated, also when its item was taken")
    func putID() async throws {
        try await withCoordinators { _, one, two, redis in
            let mine = try one.boundedBuffer("b", of: Int.self, capacity: 5)
            let others = try two.boundedBuffer("b", of: Int.self, capacity: 5)
            for buffer in [mine, mine, others] { try await buffer.put(1, id: "a") }
            for buffer in [others, mine] { try await buffer.put(2, id: "b") }
            #expect(try await mine.count == 2)
            #expect(try await others.take() == 1)
            for buffer in [mine, others] { try await buffer.put(1, id: "a") }
            #expect(try await mine.take() == 2)
            for buffer in [mine, others] { try await buffer.put(2, id: "b") }
            #expect(await errorOf { _ = try await mine.take(timeout: .zero) }?.code == .empty)
            // Another buffer has ids of its own, and a put without an id has none.
            try await one.boundedBuffer("c", of: Int.self, capacity: 1).put(1, id: "a")
            for number in 3...4 { try await mine.put(number) }
            #expect(try await mine.count == 2)
            #expect(await errorOf { try await mine.put(5, id: "") }?.code == .invalidArgument)
            try await until("all has ended") { try await Audit(redis).claims.isEmpty }
            try await Audit(redis).check()
        }
    }

    @Test("many puts with the same id at once put one item")
    func putIDAtOnce() async throws {
        try await withCoordinators { _, one, two, redis in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    let buffer = try (number % 2 == 0 ? one : two).boundedBuffer("b", of: Int.self, capacity: 50)
                    group.addTask { try await buffer.put(number, id: "\(number % 20)") }
                }
                try await group.waitForAll()
            }
            let buffer = try one.boundedBuffer("b", of: Int.self, capacity: 50)
            var items: [Int] = []
            for _ in 0..<20 { items.append(try await buffer.take(timeout: .zero)) }
            #expect(Set(items.map { $0 % 20 }).count == 20)
            #expect(await errorOf { _ = try await buffer.take(timeout: .zero) }?.code == .empty)
            try await until("all has ended") { try await Audit(redis).claims.isEmpty }
            try await Audit(redis).check()
        }
    }

    @Test("a repeated put returns when the buffer is full, also in a body that holds its item")
    func putIDWhenFull() async throws {
        try await withCoordinators { _, one, two, redis in
            let buffer = try one.boundedBuffer("b", of: Int.self, capacity: 1)
            let other = try two.boundedBuffer("b", of: Int.self, capacity: 1)
            try await buffer.put(1, id: "a")
            for timeout in [nil, .zero, .seconds(60)] as [Duration?] {
                for buffer in [buffer, other] { try await buffer.put(1, id: "a", timeout: timeout) }
            }
            #expect(await errorOf { try await other.put(2, id: "b", timeout: .zero) }?.code == .full)
            try await buffer.withItem { item in
                #expect(item == 1)
                try await buffer.put(1, id: "a")
                #expect(await errorOf { try await buffer.put(2, id: "b") }?.code == .full)
            }
            // One that waited when the same put came first puts nothing when it gets the place.
            try await buffer.put(3)
            let waiting = Task { try await other.put(2, id: "b", timeout: .seconds(60)) }
            try await until("it waits") { try await one.inspect("b")?.waiterCount == 1 }
            let second = Task { try await buffer.put(2, id: "b", timeout: .seconds(60)) }
            try await until("both wait") { try await one.inspect("b")?.waiterCount == 2 }
            #expect(try await buffer.take() == 3)
            try await waiting.value
            #expect(try await buffer.take() == 2)
            try await second.value
            #expect(await errorOf { _ = try await buffer.take(timeout: .zero) }?.code == .empty)
            try await until("all has ended") { try await Audit(redis).claims.isEmpty }
            let audit = try await Audit(redis)
            audit.check()
            #expect(audit.resources["b"]?.free == 1)
        }
    }

    @Test("each step of a put with an id whose reply is lost has one effect")
    func putIDLostReplies() async throws {
        try await withProxiedCoordinator { proxy, proxied, other, redis in
            let buffer = try proxied.boundedBuffer("jobs", of: Int.self, capacity: 2)
            let consumer = try other.boundedBuffer("jobs", of: Int.self, capacity: 2)
            var dropped = 0
            for round in 0..<20 {
                // The replies of the place, of the item that is put, and of a repetition.
                for (request, id) in [("jobs", "\(round)"), ("jobs#items", "\(round)'"), ("jobs", "\(round)")] {
                    await proxy.dropNextReply(matching: request)
                    dropped += 1
                    try await buffer.put(round, id: id)
                    try await proxy.waitUntil { [dropped] in $0.droppedReplies == dropped }
                }
                for _ in 0..<2 { #expect(try await consumer.take(timeout: .zero) == round) }
                #expect(await errorOf { _ = try await consumer.take(timeout: .zero) }?.code == .empty)
            }
            try await until("all has ended") { try await Audit(redis).claims.isEmpty }
            let audit = try await Audit(redis)
            audit.check()
            #expect(audit.items.isEmpty && audit.resources["jobs"]?.free == 2)
        }
    }

    @Test("a buffer remembers the last 10,000 ids")
    func putIDsAreBounded() async throws {
        try await withCoordinators { _, one, _, redis in
            let buffer = try one.boundedBuffer("b", of: Int.self, capacity: 5)
            let key = RedisArgument.string("rdc:{default:0}:put:b")
            try await buffer.put(0, id: "a first")
            let tick = try #require(try await redis.send("ZSCORE", key, "a first").string)
            // As many as it remembers, in the order of their bytes.
            let ids = (1..<Buffer.maxPutIDs).map { "id \(10_000 + $0)" }
            let cells = ids.flatMap { [.string(tick), .string($0)] as [RedisArgument] }
            _ = try await redis.send(RedisCommand(["ZADD", key] + cells))
            try await buffer.put(0, id: "a first")
            #expect(try await buffer.count == 1)
            try await buffer.put(1, id: "new")
            #expect(try await redis.send("ZCARD", key).integer == Buffer.maxPutIDs)
            try await buffer.put(0, id: "a first")
            #expect(try await buffer.count == 3)
            for id in [ids.last!, "new", "a first"] { try await buffer.put(9, id: id) }
            #expect(try await buffer.count == 3)
            #expect(try await redis.send("ZCARD", key).integer == Buffer.maxPutIDs)
            let left = try await redis.send("PTTL", key).integer ?? 0
            #expect(left > 0 && .milliseconds(left) <= Buffer.putIDLifetime)
            #expect(try await buffer.destroy())
            try await buffer.put(0, id: "new")
            #expect(try await buffer.count == 1)
        }
    }
}
