import Synchronization
import Testing

@testable import Hiredis

@Suite("The run of a service", .timeLimit(.minutes(10)))
struct ServiceRunTests {
    @Test("ends on cancellation when its tasks have ended, without draining")
    func cancellation() async {
        let run = ServiceRun("Service")
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let ended = Atomic(0)
        let task: @Sendable () async -> Void = {
            start.yield()
            try? await Task.sleep(for: .maxSleep)
            ended.add(1, ordering: .relaxed)
        }
        let running = Task {
            await run.run([task, task]) { Issue.record("drained") }
            return ended.load(ordering: .relaxed)
        }
        var iterator = started.makeAsyncIterator()
        await iterator.next()
        await iterator.next()
        running.cancel()
        #expect(await running.value == 2)
    }

    @Test("goes on when its tasks have ended")
    func idle() async {
        let run = ServiceRun("Service")
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let isOver = Atomic(false)
        let running = Task {
            await run.run([{ end.yield() }])
            isOver.store(true, ordering: .relaxed)
        }
        var iterator = ends.makeAsyncIterator()
        await iterator.next()
        for _ in 0..<100 { await Task.yield() }
        let hasEnded = isOver.load(ordering: .relaxed)
        #expect(!hasEnded)
        running.cancel()
        await running.value
    }

    @Test("traps when it is begun a second time")
    func second() async {
        await #expect(processExitsWith: .failure) {
            let run = ServiceRun("Service")
            let running = Task { await run.run([]) }
            running.cancel()
            await running.value
            await run.run([])
        }
    }
}
