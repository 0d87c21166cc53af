import NIOConcurrencyHelpers
import NIOCore

/// A task executor on the event loop of a `RedisClient`: see ``RedisClient/executor``.
///
/// It queues jobs itself and runs them in batches, because the event loop's queue needs a closure
/// and a lock for each entry. Only the first job of a batch pays for them.
///
/// An event loop serves its sockets only when it has nothing to run. Tasks that wake each other all
/// the time would never let it, so when they have done so for a while, the next batch waits for a
/// moment.
final class LoopExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var spare: [UnownedJob] = []
        var isScheduled = false
        var isRunning = false
        /// When the first of a row of batches began, of which each has made the next one runnable.
        var rowBegan = NIODeadline.distantPast
    }

    private static let maxRow = TimeAmount.milliseconds(1)
    /// Longer than the loop takes to look for work, so that it finds none.
    private static let pause = TimeAmount.microseconds(100)

    private let eventLoop: any EventLoop
    private let state = NIOLockedValueBox(State())

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isOnLoop = eventLoop.inEventLoop
        let isFirst = state.withLockedValue { state in
            state.jobs.append(job)
            // Otherwise the batch that runs sees to it.
            if state.isScheduled || isOnLoop && state.isRunning { return false }
            // A socket has made the job runnable: a new row begins.
            if isOnLoop { state.rowBegan = .distantPast }
            state.isScheduled = true
            return true
        }
        if isFirst { eventLoop.execute { self.run() } }
    }

    private func run() {
        var jobs = state.withLockedValue { state in
            (state.isScheduled, state.isRunning) = (false, true)
            let jobs = state.jobs
            state.jobs = state.spare
            state.spare = []
            return jobs
        }
        for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
        jobs.removeAll(keepingCapacity: jobs.capacity <= 1024)
        let now = NIODeadline.now()
        let next = state.withLockedValue { [jobs] state -> (isNeeded: Bool, pauses: Bool) in
            state.isRunning = false
            if state.spare.capacity < jobs.capacity { state.spare = jobs }
            if state.isScheduled || state.jobs.isEmpty { return (false, false) }
            state.isScheduled = true
            if state.rowBegan == .distantPast { state.rowBegan = now }
            if now - state.rowBegan < Self.maxRow { return (true, false) }
            state.rowBegan = .distantPast
            return (true, true)
        }
        guard next.isNeeded else { return }
        if next.pauses {
            eventLoop.scheduleTask(in: Self.pause) { self.run() }
        } else {
            eventLoop.execute { self.run() }
        }
    }
}
