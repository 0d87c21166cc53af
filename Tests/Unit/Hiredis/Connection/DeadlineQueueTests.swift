import Dispatch
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Synchronization
import TestRandom
import TestSupport
import Testing

@testable import Hiredis

@Suite("Deadlines of many callers", .timeLimit(.minutes(10)))
struct DeadlineQueueTests {
    private let loop = CountingEventLoop(MultiThreadedEventLoopGroup.singleton.next())

    @Test("functions are called in the order of their deadlines, and cancelled ones are not")
    func order() async throws {
        var generator = SplitMix(seed: testSeed())
        let queue = DeadlineQueue()
        let called = NIOLockedValueBox<[Int]>([])
        let start = NIODeadline.now() + .milliseconds(200)
        let numbers = Array(0..<2000).shuffled(using: &generator)
        for number in numbers {
            queue.add(UInt64(number), at: start + .microseconds(Int64(number)), on: loop) {
                called.withLockedValue { $0.append(number) }
            }
        }
        let cancelled = Set(numbers.prefix(1000).map { 2 * ($0 / 2) })
        for number in cancelled { queue.cancel(UInt64(number)) }
        try await until("the last is called") { called.withLockedValue { $0.last } == 1999 }
        let expected = (0..<2000).filter { !cancelled.contains($0) }
        // Those that a busy machine has called before they were cancelled are in order too.
        let all = called.withLockedValue { $0 }
        #expect(all == all.sorted() && Set(all).isSuperset(of: expected))
        #expect(queue.storedCount == 0)
    }

    @Test("a deadline that is earlier than all others is met")
    func earlier() async throws {
        let queue = DeadlineQueue()
        let called = NIOLockedValueBox(0)
        for number in 0..<10 {
            // Later than the end of the test.
            queue.add(UInt64(1000 + number), at: .now() + .hours(Int64(100 - number)), on: loop) {}
            queue.add(UInt64(number), at: .now() + .milliseconds(1), on: loop) { called.withLockedValue { $0 += 1 } }
            try await until("it is called") { called.withLockedValue { $0 } == number + 1 }
        }
        #expect(queue.storedCount == 10)
    }

    @Test("100,000 cancelled deadlines leave neither timers nor memory")
    func cancelled() async throws {
        let queue = DeadlineQueue()
        let start = NIODeadline.now() + .hours(1)
        for round in 0..<10 {
            for number in 0..<10_000 { queue.add(UInt64(number), at: start + .seconds(Int64(round)), on: loop) {} }
            for number in 0..<10_000 { queue.cancel(UInt64(number)) }
            #expect(queue.storedCount < 100)
        }
        #expect(loop.timers.load(ordering: .relaxed) == 1)
    }

    @Test("100,000 callers that wait for room, and are cancelled at once, need few timers")
    func room() async throws {
        let room = SendRoom(limit: 10)
        #expect(room.take(11))
        let tasks = (0..<100_000).map { _ in
            Task { () -> RedisError.Code? in
                do {
                    _ = try await room.wait(1, timeout: .hours(1), loop)
                    return nil
                } catch { return (error as? RedisError)?.code }
            }
        }
        try await until("all wait") { room.waiterCount == tasks.count }
        for task in tasks { task.cancel() }
        for task in tasks { #expect(await task.value == .cancelled) }
        // One for the first, and some for callers that overtook one another.
        #expect(loop.timers.load(ordering: .relaxed) < 1000)
    }
}

/// An event loop that counts the timers that are set.
private final class CountingEventLoop: EventLoop {
    private let loop: any EventLoop
    let timers = Atomic<Int>(0)

    init(_ loop: any EventLoop) { self.loop = loop }

    var inEventLoop: Bool { loop.inEventLoop }
    func execute(_ task: @escaping @Sendable () -> Void) { loop.execute(task) }

    func scheduleTask<T>(
        deadline: NIODeadline, _ task: @escaping @Sendable () throws -> T
    ) -> Scheduled<T> {
        timers.add(1, ordering: .relaxed)
        return loop.scheduleTask(deadline: deadline, task)
    }

    func scheduleTask<T>(in delay: TimeAmount, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
        timers.add(1, ordering: .relaxed)
        return loop.scheduleTask(in: delay, task)
    }

    func preconditionInEventLoop(file: StaticString, line: UInt) {
        loop.preconditionInEventLoop(file: file, line: line)
    }

    func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
        loop.shutdownGracefully(queue: queue, callback)
    }
}
