import NIOConcurrencyHelpers

/// An executor that runs its tasks only in `run()`, so that a test can hold a task at each suspension point.
final class ManualExecutor: TaskExecutor {
    private let jobs = NIOLockedValueBox<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLockedValue { $0.append(job) }
    }

    var hasWork: Bool { jobs.withLockedValue { !$0.isEmpty } }

    /// Runs all jobs until none is left.
    func run() {
        while let job = jobs.withLockedValue({ $0.isEmpty ? nil : $0.removeFirst() }) {
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
