import Synchronization
import Testing

@testable import Hiredis

@Suite("Abandonable operations", .timeLimit(.minutes(10)))
struct AbandonableTests {
    /// A door that the test opens.
    private struct Door {
        let stream: AsyncStream<Void>
        let open: AsyncStream<Void>.Continuation

        init() { (stream, open) = AsyncStream.makeStream(of: Void.self) }

        func pass() async {
            var iterator = stream.makeAsyncIterator()
            await iterator.next()
        }
    }

    @Test("the value is returned to the caller")
    func value() async throws {
        let value = try await abandonable {
            1
        } discard: { _ in
            Issue.record("discarded")
        } failed: {
            Issue.record("failed")
        }
        #expect(value == 1)
    }

    @Test("the error is thrown to the caller, and the failure handler is called")
    func error() async {
        let failures = Tally()
        let error = await #expect(throws: RedisError.self) {
            try await abandonable { () async throws(RedisError) -> Int in
                throw RedisError(.cannotConnect, "no")
            } discard: { _ in
                Issue.record("discarded")
            } failed: {
                failures.add(1)
            }
        }
        #expect(error?.code == .cannotConnect)
        #expect(failures.sum == 1)
    }

    @Test("a cancelled task throws .cancelled immediately, and the late value is discarded")
    func cancelled() async {
        let (started, door) = (Door(), Door())
        let (discards, discard) = AsyncStream.makeStream(of: Int.self)
        let task = Task {
            try await abandonable { () async throws(RedisError) -> Int in
                started.open.yield()
                await door.pass()
                return 7
            } discard: {
                discard.yield($0)
            } failed: {
                Issue.record("failed")
            }
        }
        await started.pass()
        task.cancel()
        let result = await task.result
        #expect((result.failure as? RedisError)?.code == .cancelled)
        door.open.yield()
        var iterator = discards.makeAsyncIterator()
        #expect(await iterator.next() == 7)
    }

    @Test("in a cancelled task the operation does not start, and the failure handler is called")
    func cancelledBefore() async {
        let door = Door()
        let failures = Tally()
        let outcome = await withTaskGroup(of: RedisError.Code?.self) { group in
            group.addTask {
                await door.pass()
                do throws(RedisError) {
                    _ = try await abandonable { () async throws(RedisError) -> Int in
                        Issue.record("begun")
                        return 1
                    } discard: { _ in
                        Issue.record("discarded")
                    } failed: {
                        failures.add(1)
                    }
                    return nil
                } catch {
                    return error.code
                }
            }
            // The cancellation ends the door's stream, and the task continues.
            group.cancelAll()
            return await group.next() ?? nil
        }
        #expect(outcome == .cancelled)
        #expect(failures.sum == 1)
    }

    @Test("an error after the cancellation only calls the failure handler")
    func errorAfterCancel() async {
        let (started, door) = (Door(), Door())
        let (failures, failed) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            try await abandonable { () async throws(RedisError) -> Int in
                started.open.yield()
                await door.pass()
                throw RedisError(.cannotConnect, "no")
            } discard: { _ in
                Issue.record("discarded")
            } failed: {
                failed.yield()
            }
        }
        await started.pass()
        task.cancel()
        #expect((await task.result.failure as? RedisError)?.code == .cancelled)
        door.open.yield()
        var iterator = failures.makeAsyncIterator()
        #expect(await iterator.next() != nil)
    }

    @Test("the value has exactly one owner whenever the task is cancelled")
    func race() async {
        let owned = Tally()
        for _ in 0..<500 {
            let (ends, end) = AsyncStream.makeStream(of: Void.self)
            let task = Task {
                let value = try await abandonable {
                    1
                } discard: {
                    owned.add($0)
                    end.yield()
                } failed: {
                    // The operation did not start and has no value; counted to keep the sum.
                    owned.add(1)
                    end.yield()
                }
                owned.add(value)
                end.yield()
            }
            task.cancel()
            var iterator = ends.makeAsyncIterator()
            await iterator.next()
            _ = await task.result
        }
        #expect(owned.sum == 500)
    }
}

private final class Tally: Sendable {
    private let count = Atomic<Int>(0)

    var sum: Int { count.load(ordering: .relaxed) }

    func add(_ number: Int) { count.wrappingAdd(number, ordering: .relaxed) }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
