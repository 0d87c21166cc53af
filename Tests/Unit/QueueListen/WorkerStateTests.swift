import Testing

@testable import QueueListen

extension QueueListenTests {
    @Suite("What a worker does next")
    struct WorkerStateTests {
        private func taken(_ tag: UInt64, fence: Int) throws -> TakenJob {
            var job = PackedBytes()
            job.uint16(1)
            job.number(fence)
            job.byte(77)
            for _ in 0..<18 { job.byte(0) }
            job.uint64(tag)
            return try #require(TakenJob(job.bytes, body: [UInt8](repeating: 0, count: 7)))
        }

        private func running(_ jobs: [(tag: UInt64, fence: Int)]) throws -> WorkerState {
            var state = WorkerState()
            state.begin("worker", until: .seconds(100))
            (state.mayHaveMore, state.askAt) = (false, .seconds(30))
            for job in jobs { state.add(try taken(job.tag, fence: job.fence)) { _, _ in Task {} } }
            return state
        }

        private func step(_ state: inout WorkerState, at seconds: Int, concurrency: Int = 2) -> String {
            let (step, cancelled) = state.nextStep(now: .seconds(seconds), concurrency: concurrency)
            return "\(step)" + (cancelled.isEmpty ? "" : ", cancels \(cancelled.count)")
        }

        @Test("it begins, asks for jobs, and sleeps until it must ask again, the server's times or its end")
        func idle() {
            var state = WorkerState()
            #expect(step(&state, at: 1) == "begin")
            state.begin("worker", until: .seconds(100))
            #expect(step(&state, at: 1) == "work")
            (state.mayHaveMore, state.askAt) = (false, .seconds(30))
            #expect(step(&state, at: 1) == "sleep(until: 30.0 seconds)")
            state.next = .seconds(20)
            #expect(step(&state, at: 1) == "sleep(until: 20.0 seconds)")
            state.nextByBeat = .seconds(10)
            #expect(step(&state, at: 1) == "sleep(until: 10.0 seconds)")
            #expect(step(&state, at: 10) == "work")
            (state.next, state.nextByBeat, state.askAt) = (nil, nil, .seconds(300))
            #expect(step(&state, at: 1) == "sleep(until: 100.0 seconds)")
        }

        @Test("without room it only reports, and asks once in a while; handlers of lost jobs take room")
        func full() throws {
            var state = try running([(1, 10), (2, 11)])
            state.mayHaveMore = true
            #expect(step(&state, at: 1) == "sleep(until: 30.0 seconds)")
            #expect(step(&state, at: 30) == "work")
            #expect(state.lose([1, 2], asOf: [1: 10, 2: 12]).count == 1)
            #expect(state.running.keys.sorted() == [2] && state.room(of: 2) == 0)
            state.handlerEnded(1)
            #expect(state.room(of: 2) == 1 && step(&state, at: 1) == "work")
        }

        @Test("a job that is taken again while its earlier run goes on cancels that one, whose end is not reported")
        func again() throws {
            var state = try running([(1, 10)])
            var earlier: Task<Void, Never>?
            state.add(try taken(1, fence: 12)) { _, task in
                earlier = task
                return Task {}
            }
            #expect(earlier?.isCancelled == true && state.fence == 12)
            #expect(state.note(JobEnd(tag: 1, fence: 10, outcome: .done)) == nil)
            #expect(state.note(JobEnd(tag: 1, fence: 12, outcome: .done)) != nil && state.ends.count == 1)
        }

        @Test("a job whose effect is confirmed is reported as that, whatever its handler does, unless it was lost")
        func effect() throws {
            var state = try running([(1, 10), (2, 11)])
            state.confirmEffect(of: 1, fence: 10)
            state.confirmEffect(of: 2, fence: 9)
            for (tag, fence) in [(1, 10), (2, 11)] {
                _ = state.note(JobEnd(tag: UInt64(tag), fence: fence, outcome: .giveUp, reason: "x"))
            }
            #expect(state.ends.map(\.outcome) == [.hadEffect, .giveUp])
        }

        @Test("at its end it loses everything and begins again, or leaves")
        func end() throws {
            var state = try running([(1, 10), (2, 11)])
            #expect(step(&state, at: 100) == "begin, cancels 2")
            #expect(state.running.isEmpty && step(&state, at: 1) == "begin")
            state = try running([(1, 10)])
            state.graceEnd = .seconds(500)
            #expect(step(&state, at: 100) == "leave(isAlive: false), cancels 1")
        }

        @Test("when it stops it reports, waits for its jobs, cancels them after the grace, and leaves")
        func stop() throws {
            var state = try running([(1, 10)])
            (state.mayHaveMore, state.graceEnd) = (true, .seconds(50))
            #expect(state.room(of: 2) == 0)
            #expect(step(&state, at: 1) == "sleep(until: 50.0 seconds)")
            #expect(step(&state, at: 50) == "sleep(until: 100.0 seconds), cancels 1")
            #expect(state.note(JobEnd(tag: 1, fence: 10, outcome: .return)) != nil)
            #expect(step(&state, at: 50) == "work")
            state.ends = []
            #expect(step(&state, at: 50) == "leave(isAlive: true)")
        }
    }
}
