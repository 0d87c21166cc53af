import Hiredis
import RedisDC
import Verification

/// Tasks of one process that take turns with the mutex of a cohort, and record them for the judge of `redisdc verify`.
///
/// An actor, so that a task is in the queue before anything else runs here: on its way into the queue, `withLock` does
/// not suspend.
actor Turns {
    private let mutex: DistributedMutex
    private let redis: RedisClient
    private let recorder: Recorder
    /// The number of tasks that wait for their turn or have it.
    private var queued = 0

    init(mutex: DistributedMutex, redis: RedisClient, recorder: Recorder) {
        (self.mutex, self.redis, self.recorder) = (mutex, redis, recorder)
    }

    /// Runs until each task has had a turn that was not lost. Turns last until the key `go` exists.
    ///
    /// Records `started` when one task has its turn or is about to, and all others wait.
    func run(tasks: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<tasks { group.addTask { try await self.haveTurn() } }
            while queued < tasks { try await Task.sleep(for: .milliseconds(5)) }
            recorder.record(Event(.started, at: Recorder.now, process: recorder.process))
            try await group.waitForAll()
        }
    }

    private func haveTurn() async throws {
        while true {
            let (operation, called) = (recorder.nextOperation(), Recorder.now)
            recorder.record(
                Event(.call, at: called, process: recorder.process, mutex.name, operation: operation, verb: .lock))
            queued += 1
            do {
                return try await mutex.withLock { lease in try await hold(lease, operation, called) }
            } catch let error as RedisDCError where error.code == .lost {
                queued -= 1
                recorder.record(
                    Event(.failed, at: Recorder.now, process: recorder.process, operation: operation, note: "lost"))
            }
        }
    }

    private func hold(_ lease: Lease, _ operation: Int, _ called: UInt64) async throws {
        // A time is read before the lease: then the lease was held at that time.
        let start = Recorder.now
        guard lease.isHeld else { return }
        recorder.record(
            Event(
                .enter, at: start, process: recorder.process, mutex.name, operation: operation, verb: .lock,
                called: called, fence: lease.fence, count: 1, limit: 1, note: Event.turn))
        while true {
            let isOver = try await redis.send("EXISTS", "go").integer == 1
            let time = Recorder.now
            if lease.isHeld {
                recorder.record(Event(.held, at: time, process: recorder.process, operation: operation))
            }
            if isOver { return }
            // Short, but long enough not to occupy a processor core.
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
