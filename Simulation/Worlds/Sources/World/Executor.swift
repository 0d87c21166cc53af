// Runs the tasks of a world, and the asynchronous code of the library, one after the other on the thread of the world.
import DequeModule

/// The executor of the tasks of a world. Nothing runs until ``drain()``, so the order is the same in each run.
///
/// `@unchecked`: a world is used by one thread.
final class WorldExecutor: TaskExecutor, SerialExecutor, @unchecked Sendable {
    private var jobs: Deque<UnownedJob> = []
    private var isDraining = false
    private var suspended: [Int: UnsafeContinuation<Bool, Never>] = [:]
    private var lastSuspension = 0

    func enqueue(_ job: consuming ExecutorJob) { add(UnownedJob(job)) }

    func add(_ job: UnownedJob) { jobs.append(job) }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    // There is one thread, so every caller is on this executor.
    func isIsolatingCurrentContext() -> Bool? { true }

    func checkIsolated() {}

    /// Begins a task.
    @discardableResult
    func begin(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: self) { await body() }
    }

    /// Runs all tasks that can go on, until each of them waits.
    func drain() {
        if isDraining { return }
        isDraining = true
        defer { isDraining = false }
        while let job = jobs.popFirst() {
            job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
        }
    }

    /// Suspends the task until the completion that `begin` gets is called.
    ///
    /// - Throws: ``Gone`` when the world ends before.
    func result<Value>(_ begin: (@escaping (Value) -> Void) -> Void) async throws -> Value {
        let result = Slot<Value>()
        lastSuspension += 1
        let number = lastSuspension
        let isThere = await withUnsafeContinuation { continuation in
            suspended[number] = continuation
            begin { value in
                guard let continuation = self.suspended.removeValue(forKey: number) else { return }
                result.value = value
                continuation.resume(returning: true)
            }
        }
        guard isThere, let value = result.value else { throw Gone() }
        return value
    }

    private final class Slot<Value> {
        var value: Value?
    }

    /// Ends all tasks that still wait, those of dead processes among them.
    func end() {
        while !suspended.isEmpty {
            let waiting = suspended
            suspended = [:]
            for (_, continuation) in waiting.sorted(by: { $0.key < $1.key }) { continuation.resume(returning: false) }
            drain()
        }
    }
}

/// The process of a task does not exist any more, so nothing is known about what the task has begun.
struct Gone: Error {}
