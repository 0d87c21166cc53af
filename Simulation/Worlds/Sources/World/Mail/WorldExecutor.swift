// Runs the asynchronous code of the library inside a world: on one thread, in an order that repeats.
import DequeModule

/// The executor of all tasks of a world. Nothing runs by itself: ``run()`` runs what is ready.
///
/// `@unchecked`: a world is used by one thread.
final class WorldExecutor: TaskExecutor, SerialExecutor, @unchecked Sendable {
    private var jobs = Deque<UnownedJob>()

    func enqueue(_ job: consuming ExecutorJob) { add(UnownedJob(job)) }

    func add(_ job: UnownedJob) { jobs.append(job) }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    // There is one thread, so every caller is on this executor.
    func isIsolatingCurrentContext() -> Bool? { true }

    func checkIsolated() {}

    /// Runs all jobs that are ready, and those that become ready meanwhile.
    func run() {
        while let job = jobs.popFirst() {
            job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
        }
    }

    /// Begins a task.
    @discardableResult
    func begin(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: self) { await body() }
    }
}
