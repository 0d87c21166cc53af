import Hiredis
import RedisDC
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Bounded buffer", .serialized)
    struct BoundedBufferTests {
        @Test("items leave in the order in which they came, and never exceed the places")
        func order() async throws {
            try await withCoordinators { _, one, two, redis in
                let producer = try one.boundedBuffer("b", of: Int.self, capacity: 3)
                let consumer = try two.boundedBuffer("b", of: Int.self, capacity: 3)
                for number in 0..<3 { try await producer.put(number) }
                #expect(try await consumer.count == 3)
                #expect(await errorOf { try await producer.put(9, timeout: .zero) }?.code == .full)
                #expect(await errorOf { try await producer.put(9, timeout: .seconds(1)) }?.code == .full)
                let waiting = Task { try await producer.put(3, timeout: .seconds(60)) }
                try await until("it waits") { try await two.inspect("b")?.waiterCount == 1 }
                try await Audit(redis).check()
                for number in 0..<4 { #expect(try await consumer.take(timeout: .seconds(60)) == number) }
                try await waiting.value
                #expect(await errorOf { _ = try await consumer.take(timeout: .zero) }?.code == .empty)
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.items.isEmpty && audit.claims.isEmpty)
                #expect(audit.resources["b"]?.free == 3)
            }
        }

        @Test("an item whose body throws or is cancelled is the first again")
        func comesBack() async throws {
            struct Unlucky: Error {}
            try await withCoordinators { _, one, two, redis in
                let buffer = try one.boundedBuffer("b", of: Int.self, capacity: 5)
                for number in 0..<3 { try await buffer.put(number) }
                await #expect(throws: Unlucky.self) {
                    try await buffer.withItem(retryDelay: .zero) { _ in throw Unlucky() }
                }
                let (began, beginning) = AsyncStream.makeStream(of: Int.self)
                let cancelled = Task {
                    try await buffer.withItem { item in
                        beginning.yield(item)
                        try await Task.sleep(for: .seconds(600))
                    }
                }
                var items = began.makeAsyncIterator()
                #expect(await items.next() == 0)
                // It keeps its place: the other consumers take the next.
                let other = try two.boundedBuffer("b", of: Int.self, capacity: 5)
                #expect(try await other.take() == 1)
                try await Audit(redis).check()
                cancelled.cancel()
                _ = await cancelled.result
                #expect(try await [other.take(), other.take()] == [0, 2])
                try await Audit(redis).check()
            }
        }

        @Test("an item whose body throws is not handed out again before the retry delay, and holds up no others")
        func retryDelay() async throws {
            struct Unlucky: Error {}
            try await withCoordinators { _, one, two, _ in
                let buffer = try one.boundedBuffer("b", of: Int.self, capacity: 5)
                let other = try two.boundedBuffer("b", of: Int.self, capacity: 5)
                for number in 0..<2 { try await buffer.put(number) }
                var handled: [Int] = []
                var errors: [RedisDCError.Code] = []
                // A consumer that retries at once, as a worker's loop does.
                for _ in 0..<1000 {
                    do {
                        try await buffer.withItem(timeout: .zero, retryDelay: .seconds(3600)) { item in
                            handled.append(item)
                            if item == 0 { throw Unlucky() }
                        }
                    } catch is Unlucky {
                    } catch let error as RedisDCError { errors.append(error.code) }
                }
                #expect(handled == [0, 1])
                #expect(errors.count == 998 && Set(errors) == [.empty])
                #expect(await errorOf { _ = try await other.take(timeout: .zero) }?.code == .empty)
                // After a short delay it is the first again.
                try await buffer.put(2)
                await #expect(throws: Unlucky.self) {
                    try await buffer.withItem(retryDelay: .milliseconds(20)) { _ in throw Unlucky() }
                }
                #expect(try await other.take(timeout: .seconds(60)) == 2)
            }
        }

        @Test("a put into the full buffer whose item its task holds throws, unless a timeout lets it wait for others")
        func putInBody() async throws {
            try await withCoordinators { _, one, two, _ in
                let buffer = try one.boundedBuffer("b", of: Int.self, capacity: 2)
                for number in 0..<2 { try await buffer.put(number) }
                let error = await errorOf {
                    try await buffer.withItem(retryDelay: .zero) { _ in try await buffer.put(2) }
                }
                #expect(error?.code == .full)
                #expect(error?.message.contains("this task holds one of its items") == true)
                let consumer = try two.boundedBuffer("b", of: Int.self, capacity: 2)
                try await buffer.withItem { item in
                    #expect(item == 0)
                    let taking = Task { try await consumer.take() }
                    try await buffer.put(2, timeout: .seconds(60))
                    #expect(try await taking.value == 1)
                }
                #expect(try await buffer.take() == 2)
            }
        }

        @Test("a buffer is resized: waiting puts get the new places, and old handles work")
        func resize() async throws {
            try await withCoordinators { _, one, two, redis in
                let buffer = try one.boundedBuffer("b", of: Int.self, capacity: 1)
                #expect(await errorOf { try await buffer.resize(to: 2) }?.code == .notFound)
                try await buffer.put(0)
                let waiting = Task { try await buffer.put(1, timeout: .seconds(60)) }
                try await until("it waits") { try await two.inspect("b")?.waiterCount == 1 }
                try await buffer.resize(to: 3)
                try await waiting.value
                let other = try two.boundedBuffer("b", of: Int.self, capacity: 3)
                try await other.put(2)
                #expect(await errorOf { try await other.put(3, timeout: .zero) }?.code == .full)
                try await other.resize(to: 1)
                for number in 0..<2 {
                    #expect(try await other.take() == number)
                    #expect(await errorOf { try await buffer.put(9, timeout: .zero) }?.code == .full)
                }
                #expect(try await other.take() == 2)
                try await buffer.put(3)
                let stranger = try two.boundedBuffer("b", of: Int.self, capacity: 7)
                #expect(await errorOf { try await stranger.put(4) }?.code == .conflict)
                #expect(await errorOf { try await buffer.resize(to: 0) }?.code == .invalidArgument)
                try await Audit(redis).check()
            }
        }

        @Test("destroying a buffer wakes all waiters, and leaves no keys when the last body has ended")
        func destroy() async throws {
            try await withCoordinators { _, one, two, redis in
                let buffer = try one.boundedBuffer("b", of: Int.self, capacity: 2)
                let other = try two.boundedBuffer("b", of: Int.self, capacity: 2)
                for number in 0..<2 { try await buffer.put(number) }
                let producer = Task { await errorOf { try await buffer.put(2) } }
                try await until("it waits") { try await two.inspect("b")?.waiterCount == 1 }
                let error = await errorOf {
                    try await buffer.withItem { _ in
                        #expect(try await other.destroy())
                        // A new buffer of the same name is unaffected.
                        try await other.put(7)
                    }
                }
                #expect(error?.code == .destroyed)
                #expect(await producer.value?.code == .destroyed)
                #expect(try await other.take() == 7)
                #expect(try await other.destroy())
                #expect(try await other.destroy() == false)
                try await until("all has ended") { try await Audit(redis).claims.isEmpty }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.items.isEmpty && audit.claims.isEmpty && audit.resources.isEmpty)
            }
        }

        @Test("each step whose reply is lost has one effect")
        func lostReplies() async throws {
            try await withProxiedCoordinator { proxy, proxied, _, redis in
                let buffer = try proxied.boundedBuffer("jobs", of: Int.self, capacity: 2)
                var dropped = 0
                for round in 0..<20 {
                    for step in 0..<5 {
                        // The steps of a put and of a take, one after another.
                        for number in 0..<2 {
                            await proxy.dropNextReply(matching: "jobs")
                            dropped += 1
                            if number == 0 {
                                try await buffer.put(round * 10 + step, timeout: .seconds(60))
                            } else {
                                #expect(try await buffer.take(timeout: .seconds(60)) == round * 10 + step)
                            }
                            try await proxy.waitUntil { [dropped] in $0.droppedReplies == dropped }
                        }
                    }
                }
                try await until("all has ended") { try await Audit(redis).claims.isEmpty }
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.items.isEmpty && audit.resources["jobs"]?.free == 2)
            }
        }

        @Test("at maxmemory nothing is put, and a body that holds an item can end")
        func maxMemory() async throws {
            try await withCoordinators { _, one, _, redis in
                let buffer = try one.boundedBuffer("b", of: Int.self, capacity: 2)
                try await buffer.put(1)
                try await buffer.put(2)
                try await buffer.withItem { item in
                    #expect(item == 1)
                    _ = try await redis.send("CONFIG", "SET", "maxmemory", "1")
                }
                let putting = await errorOf { try await buffer.put(3) }
                #expect(putting?.code == .outOfMemory)
                #expect(await errorOf { try await buffer.put(3, id: "three") }?.code == .outOfMemory)
                _ = try await redis.send("CONFIG", "SET", "maxmemory", "0")
                #expect(try await redis.send("EXISTS", "rdc:{default:0}:put:b").integer == 0)
                try await Audit(redis).check()
                #expect(try await buffer.take() == 2)
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.items.isEmpty && audit.resources["b"]?.free == 2)
            }
        }

        @Test(
            "in a random mix each item is handled once, by one consumer at a time", arguments: testSeeds(0..<3))
        func mix(seed: UInt64) async throws {
            try await withCoordinators { _, one, two, redis in
                let (producers, each) = (4, 40)
                let handled = Handled()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<producers {
                        let buffer = try (number < 2 ? one : two).boundedBuffer("b", of: Int.self, capacity: 3)
                        group.addTask {
                            var random = SplitMix(seed: seed &* 100 &+ UInt64(number))
                            var next = 0
                            while next < each {
                                do {
                                    let limit = Duration.microseconds(Int.random(in: 500...20_000, using: &random))
                                    try await buffer.put(number * 1000 + next, timeout: limit)
                                    next += 1
                                } catch let error as RedisDCError where [.timedOut, .full].contains(error.code) {}
                            }
                        }
                        group.addTask {
                            var random = SplitMix(seed: seed &* 100 &+ 50 &+ UInt64(number))
                            while await handled.count < producers * each {
                                let limit = Duration.microseconds(Int.random(in: 500...20_000, using: &random))
                                let throwsAway = Int.random(in: 0..<4, using: &random) == 0
                                do {
                                    try await buffer.withItem(timeout: limit, retryDelay: .zero) { item in
                                        await handled.begin(item)
                                        await Task.yield()
                                        if throwsAway {
                                            await handled.leave(item)
                                            throw CancellationError()
                                        }
                                        await handled.end(item)
                                    }
                                } catch let error as RedisDCError where [.timedOut, .empty].contains(error.code) {
                                } catch is CancellationError {}
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(await handled.faults == [])
                #expect(await handled.maxInHand <= 3)
                let audit = try await Audit(redis)
                audit.check()
                #expect(audit.items.isEmpty && audit.resources["b"]?.free == 3)
            }
        }
    }
}

private actor Handled {
    private var inHand: Set<Int> = []
    private var done: Set<Int> = []
    private(set) var faults: [String] = []
    private(set) var maxInHand = 0

    var count: Int { done.count }

    func begin(_ item: Int) {
        if done.contains(item) || !inHand.insert(item).inserted { faults.append("\(item) twice") }
        maxInHand = max(maxInHand, inHand.count)
    }

    func leave(_ item: Int) { inHand.remove(item) }

    func end(_ item: Int) {
        inHand.remove(item)
        done.insert(item)
    }
}
