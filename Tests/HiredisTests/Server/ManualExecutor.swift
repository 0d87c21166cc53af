import NIOConcurrencyHelpers

/// Runs a task only when it is told to, on the thread that tells it: so a test can stop a task wherever it waits.
final class ManualExecutor: TaskExecutor {
    private let jobs = NIOLockedValueBox<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLockedValue { $0.append(job) }
    }

    var hasWork: Bool { jobs.withLockedValue { !$0.isEmpty } }

    /// Runs what there is to run, until all waits for something else.
    func run() {
        while let job = jobs.withLockedValue({ $0.isEmpty ? nil : $0.removeFirst() }) {
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
