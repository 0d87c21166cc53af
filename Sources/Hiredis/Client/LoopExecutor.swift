import NIOCore
import NIOConcurrencyHelpers

/// A task executor on the event loop of a `RedisClient`: see ``RedisClient/executor``.
///
/// It queues jobs itself and runs them in batches, because the event loop's queue needs a closure
/// and a lock for each entry. Only the first job of a batch pays for them.
final class LoopExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var spare: [UnownedJob] = []
        var isScheduled = false
    }

    private let eventLoop: any EventLoop
    private let state = NIOLockedValueBox(State())

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isFirst = state.withLockedValue { state in
            state.jobs.append(job)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isFirst { eventLoop.execute { self.run() } }
    }

    private func run() {
        // Jobs that these make runnable run in the loop's next turn, so that the sockets are served in between.
        var jobs = state.withLockedValue { state in
            state.isScheduled = false
            let jobs = state.jobs
            state.jobs = state.spare
            state.spare = []
            return jobs
        }
        for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
        jobs.removeAll(keepingCapacity: jobs.capacity <= 1024)
        state.withLockedValue { [jobs] in if $0.spare.capacity < jobs.capacity { $0.spare = jobs } }
    }
}
