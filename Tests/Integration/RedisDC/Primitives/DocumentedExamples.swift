// The examples in the primitives' documentation, line by line, in programs that run: here, or in the tests of the
// primitive.
import Foundation
import Hiredis
import RedisDC
import Synchronization
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension PrimitiveTests {
    @Suite("Documented examples", .serialized)
    struct ExampleTests {
        @Test("each line of an example is in a program that is compiled and run", arguments: try primitives())
        func arePrograms(page: String) throws {
            let lines = try Self.example(of: page)
            try #require(!lines.isEmpty, "\(page) has no example")
            let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("\(page)Tests.swift")
            let programs = try Self.lines(of: #filePath) + ((try? Self.lines(of: tests.path)) ?? [])
            // The lines are there in the same order; what they need may be between them.
            var next = programs.startIndex
            for line in lines {
                let place = programs[next...].firstIndex(of: line) ?? programs.firstIndex(of: line)
                #expect(place != nil, "\(page): \(line)")
                next = (place ?? next) + 1
            }
        }

        private static let folder = packageRoot.appendingPathComponent("Sources/RedisDC/Primitives")

        private static func lines(of path: String) throws -> [String] {
            try String(contentsOfFile: path, encoding: .utf8).components(separatedBy: "\n").map(bare)
        }

        private static func bare(_ line: String) -> String {
            let code = line.range(of: " //").map { String(line[..<$0.lowerBound]) } ?? line
            return code.trimmingCharacters(in: .whitespaces)
        }

        /// The lines of a file's first example, without their comments.
        private static func example(of page: String) throws -> [String] {
            let source = try String(
                contentsOf: folder.appendingPathComponent("\(page).swift"), encoding: .utf8)
            guard let start = source.range(of: "/// ```swift\n"),
                let end = source.range(of: "/// ```\n", range: start.upperBound..<source.endIndex)
            else { return [] }
            return source[start.upperBound..<end.lowerBound].components(separatedBy: "\n")
                .map { bare(String($0.trimmingCharacters(in: .whitespaces).dropFirst(4))) }.filter { !$0.isEmpty }
        }

        // MARK: The programs

        @Test("Barrier")
        func barrier() async throws {
            try await withCoordinators { _, coordinator, _, _ in
                let frames = Counter()
                try await together(4) {
                    var round = 0
                    var isRunning: Bool { round < 3 }
                    func simulate() async throws { round += 1 }
                    func publishFrame() async throws { frames.add() }
                    let barrier = try coordinator.barrier("frame", parties: 4)
                    while isRunning {
                        try await simulate()
                        let arrival = try await barrier.arriveAndWait(timeout: .seconds(5))
                        if arrival.index == 0 { try await publishFrame() }
                    }
                }
                #expect(frames.value == 3)
            }
        }

        @Test("BoundedBuffer")
        func boundedBuffer() async throws {
            struct Job: Codable, Equatable { var id: Int }
            try await withCoordinators { _, coordinator, _, _ in
                let done = Counter()
                @Sendable func perform(_ job: Job) async throws { done.add(job.id) }
                let job = Job(id: 7)
                let jobs = try coordinator.boundedBuffer("jobs", of: Job.self, capacity: 100)
                try await jobs.put(job)
                try await jobs.withItem { job in try await perform(job) }
                #expect(done.value == 7)
            }
        }

        @Test("Condition")
        func condition() async throws {
            actor Stock {
                private var items = ["bread"]
                var isEmpty: Bool { items.isEmpty }
                func take() { items.removeFirst() }
                func add(_ item: String) { items.append(item) }
            }
            try await withCoordinators { _, coordinator, _, _ in
                let (stock, item) = (Stock(), "milk")
                let mutex = try coordinator.mutex("stock")
                let arrived = try mutex.condition("arrived")

                try await mutex.withLock { lease in
                    while await stock.isEmpty { try await arrived.wait(lease) }
                    await stock.take()
                }
                try await mutex.withLock { _ in
                    await stock.add(item)
                    try await arrived.notify()
                }
                #expect(await !stock.isEmpty)
            }
        }

        @Test("DistributedMutex and ReadWriteLock")
        func locks() async throws {
            actor Storage {
                private(set) var fence: UInt64 = 0
                func write(_ order: String, fence: UInt64) throws { self.fence = fence }
                func update(_ item: String, fence: UInt64) throws { self.fence = fence }
                func price(of item: String) throws -> Int { item.count }
            }
            try await withCoordinators { _, coordinator, _, _ in
                let (storage, order, item) = (Storage(), "one", "bread")
                let mutex = try coordinator.mutex("orders")
                try await mutex.withLock { lease in
                    try await storage.write(order, fence: lease.fence)
                }
                let first = await storage.fence
                let catalogue = storage
                let lock = try coordinator.readWriteLock("catalogue")
                let price = try await lock.withReadLock { _ in try await catalogue.price(of: item) }
                try await lock.withWriteLock { lease in try await catalogue.update(item, fence: lease.fence) }
                #expect(price == 5)
                #expect(await storage.fence > first)
            }
        }

        @Test("DoubleBarrier")
        func doubleBarrier() async throws {
            try await withCoordinators { _, coordinator, _, _ in
                let parts = Counter()
                @Sendable func importMyPart() async throws { parts.add() }
                try await together(3) {
                    let together = try coordinator.doubleBarrier("import", parties: 3)
                    try await together.run { try await importMyPart() }
                    #expect(parts.value == 3)
                }
            }
        }

        @Test("Election")
        func election() async throws {
            try await withCoordinators { _, coordinator, _, _ in
                struct Enough: Error {}
                let (shown, showing) = AsyncStream.makeStream(of: Leader?.self)
                @Sendable func show(_ leader: Leader?) { showing.yield(leader) }
                @Sendable func schedule(fence: UInt64) async throws {
                    for await leader in shown where leader?.term == fence { throw Enough() }
                }
                let election = try coordinator.election("scheduler")
                let leading = Task {
                    try await election.withLeadership { term in
                        while term.isHeld { try await schedule(fence: term.fence) }
                    }
                }
                let watching = Task {
                    for await leader in election.changes() { show(leader) }
                }
                await #expect(throws: Enough.self) { try await leading.value }
                watching.cancel()
            }
        }

        @Test("Exchanger")
        func exchanger() async throws {
            struct Card: Codable, Hashable { var value: Int }
            try await withCoordinators { _, coordinator, _, _ in
                let sum = Counter()
                try await together(2) {
                    let mine = Card(value: 4)
                    let deal = try coordinator.exchanger("deal", of: Card.self)
                    let met = try await deal.exchange(mine, timeout: .seconds(5))
                    let theirs = met.others[0]
                    sum.add(theirs.value)
                }
                #expect(sum.value == 8)
            }
        }

        @Test("Latch and Turnstile")
        func latch() async throws {
            try await withCoordinators { _, coordinator, _, _ in
                let passed = Counter()
                try await together(3) {
                    let shard = UUID().uuidString
                    let loaded = try coordinator.latch("loaded", count: 3)
                    try await loaded.countDown(id: shard)
                    try await loaded.wait(timeout: .seconds(60))
                    passed.add()
                }
                #expect(passed.value == 3)
                let gate = try coordinator.turnstile("start")
                let passing = Task {
                    try await gate.pass(timeout: .seconds(30))
                }
                try await gate.unlock()
                try await passing.value
            }
        }

        @Test("LightSwitch")
        func lightSwitch() async throws {
            try await withCoordinators { _, coordinator, _, _ in
                let steps = Counter()
                @Sendable func read() async throws { steps.add() }
                @Sendable func clean() async throws { steps.add(10) }
                let room = try coordinator.mutex("room")
                let readers = try room.lightSwitch("readers")
                try await readers.withLock { _ in try await read() }
                try await room.withLock { _ in try await clean() }
                #expect(steps.value == 11)
            }
        }

        @Test("MultiLock")
        func severalLocks() async throws {
            try await withCoordinators { _, coordinator, _, _ in
                let transfers = Counter()
                @Sendable func transfer(fences: [UInt64]) async throws { transfers.add(fences.count) }
                let (from, to) = (try coordinator.mutex("account 1"), try coordinator.mutex("account 2"))
                try await coordinator.withLocks([from, to]) { leases in
                    try await transfer(fences: leases.map(\.fence))
                }
                #expect(transfers.value == 2)
            }
        }

        @Test("Phaser")
        func phaser() async throws {
            try await withCoordinators { _, coordinator, _, _ in
                let left = Counter(3)
                @Sendable func next() async throws -> Int? { left.value > 0 ? left.value : nil }
                @Sendable func perform(_ work: Int) async throws { left.add(-1) }
                let phaser = try coordinator.phaser("round")
                try await phaser.withParty { party in
                    while let work = try await next() {
                        try await perform(work)
                        try await party.arriveAndWait()
                    }
                }
                #expect(left.value == 0)
            }
        }

        @Test("RateLimiter")
        func rateLimiter() async throws {
            struct TooManyRequests: Error {}
            try await withCoordinators { _, coordinator, _, _ in
                let limiter = try coordinator.rateLimiter("api", rate: 100, per: .seconds(1), burst: 20)
                guard try await limiter.tryAcquire().isAllowed else { throw TooManyRequests() }
                try await limiter.acquire(timeout: .seconds(2))
            }
        }

        @Test("Semaphore")
        func semaphore() async throws {
            try await withCoordinators { _, coordinator, _, _ in
                let played = Counter()
                @Sendable func play() async throws { played.add() }
                let seats = try coordinator.semaphore("seats", permits: 4)
                try await seats.withPermit { _ in try await play() }

                let arrived = try coordinator.semaphore("arrived", permits: 0)
                try await arrived.signal()
                try await arrived.wait(timeout: .seconds(5))
                #expect(played.value == 1)
            }
        }
    }
}

/// The primitives: a file for each.
private func primitives() throws -> [String] {
    let folder = packageRoot.appendingPathComponent("Sources/RedisDC/Primitives")
    return try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        .map { String($0.dropLast(6)) }
}

private final class Counter: Sendable {
    private let count: Atomic<Int>
    init(_ count: Int = 0) { self.count = Atomic(count) }
    var value: Int { count.load(ordering: .acquiring) }
    func add(_ number: Int = 1) { count.add(number, ordering: .acquiringAndReleasing) }
}

private func together(_ count: Int, _ body: @escaping @Sendable () async throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<count { group.addTask { try await body() } }
        try await group.waitForAll()
    }
}
