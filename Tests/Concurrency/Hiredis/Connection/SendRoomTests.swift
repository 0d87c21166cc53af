import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Hiredis

@Suite("Room for commands that wait to be sent", .timeLimit(.minutes(10)))
struct SendRoomTests {
    private let loop = MultiThreadedEventLoopGroup.singleton.next()

    private func waiting(_ room: SendRoom, _ size: Int, timeout: TimeAmount? = nil) -> Task<RedisError?, Never> {
        Task {
            do {
                _ = try await room.wait(size, timeout: timeout, loop)
                return nil
            } catch { return error as? RedisError }
        }
    }

    private func untilWaiting(_ count: Int, _ room: SendRoom) async throws {
        try await until("\(count) callers wait") { room.waiterCount == count }
    }

    @Test("callers wait in their order until there is room, and none passes them")
    func order() async throws {
        let room = SendRoom(limit: 10)
        #expect(room.take(9) && room.take(9))
        #expect(!room.take(1))
        let order = NIOLockedValueBox<[Int]>([])
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<5 {
            tasks.append(
                Task {
                    _ = try await room.wait(6, timeout: nil, loop)
                    order.withLockedValue { $0.append(number) }
                })
            try await untilWaiting(number + 1, room)
        }
        room.give(9)
        #expect(room.takenBytes == 15)
        try await until("there was room for one") { !order.withLockedValue(\.isEmpty) }
        // There is no room for another one, and there are waiters.
        #expect(!room.take(1))
        room.give(9)
        for _ in 0..<5 { room.give(6) }
        for task in tasks { try await task.value }
        #expect(room.takenBytes == 0)
        #expect(room.take(1))
    }

    @Test("a wait whose deadline passes before it has begun ends")
    func passedDeadline() async throws {
        let room = SendRoom(limit: 10)
        #expect(room.take(11))
        for nanoseconds in 0..<2000 {
            #expect(await waiting(room, 5, timeout: .nanoseconds(Int64(nanoseconds))).value?.code == .timedOut)
        }
        #expect(room.waiterCount == 0)
    }

    @Test("one command that is larger than the limit finds room when nothing else waits to be sent")
    func larger() async throws {
        let room = SendRoom(limit: 10)
        #expect(room.take(1))
        #expect(room.take(100))
        let another = waiting(room, 100)
        try await untilWaiting(1, room)
        room.give(100)
        #expect(await another.value == nil)
    }

    @Test("a wait ends when it is cancelled, when its time is over and with the connection, and the next one goes on")
    func ends() async throws {
        let room = SendRoom(limit: 10)
        #expect(room.take(20))
        let cancelled = waiting(room, 1)
        try await untilWaiting(1, room)
        let last = waiting(room, 1)
        try await untilWaiting(2, room)
        cancelled.cancel()
        #expect(await cancelled.value?.code == .cancelled)
        let error = await waiting(room, 1, timeout: .milliseconds(20)).value
        #expect(error?.code == .timedOut && error?.mayHaveRun == false)
        #expect(room.waiterCount == 1)
        room.give(20)
        #expect(await last.value == nil)
        #expect(room.take(20))
        let lost = waiting(room, 1)
        try await untilWaiting(1, room)
        room.close(RedisError(.connectionLost, "over"))
        #expect(await lost.value?.code == .connectionLost)
        #expect(await waiting(room, 1).value?.code == .connectionLost)
    }

    @Test("among many threads no waiter is forgotten")
    func threads() async throws {
        let room = SendRoom(limit: 100)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<16 {
                group.addTask {
                    for number in 0..<2000 {
                        let size = 1 + (task * 31 + number * 7) % 60
                        if !room.take(size) {
                            let wait = Task { try await room.wait(size, timeout: nil, loop) }
                            if number % 5 == 0 { wait.cancel() }
                            do { _ = try await wait.value } catch { continue }
                        }
                        await Task.yield()
                        room.give(size)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(room.takenBytes == 0 && room.waiterCount == 0)
    }
}
