/// What a worker knows about its life, its jobs, and what it may take.
struct WorkerState: Sendable {
    /// A job that runs.
    struct Running: Sendable {
        var fence: Int
        var task: Task<Void, Never>
        /// Whether an operator has cancelled it.
        var isCancelled = false
        /// Whether Redis has confirmed that it is finished with its effect.
        var hadEffect = false
    }

    enum Step {
        /// Begin a life.
        case begin
        /// Report ends and take jobs.
        case work
        case sleep(until: Duration)
        /// Let others run what is left. `isAlive` is false if the life is over.
        case leave(isAlive: Bool)
    }

    /// The worker's id: 16 characters. Empty before the first life.
    var process = ""
    /// The number of the last request that was answered.
    var number = 0
    /// The highest fence of its jobs.
    var fence = 0
    /// The jobs that run, by their tags.
    var running: [UInt64: Running] = [:]
    /// The handlers that have not ended, also those of jobs that are lost.
    var handlers: [Int: Task<Void, Never>] = [:]
    private var handlerCount = 0
    /// What has become of jobs, as far as it is not reported.
    var ends: [JobEnd] = []
    /// When others may find this worker dead, with a margin.
    var lifeEnd = Duration.zero
    /// When the jobs of a worker that stops are cancelled; `nil` if it does not stop.
    var graceEnd: Duration?
    /// Whether there may be jobs to take, because of a wake-up or a reply since the last request was sent.
    var mayHaveMore = true
    /// When the next job that waits may be taken, by the reply of the last request.
    var next: Duration?
    /// The same by a `beat`; `nil` when a request was sent since.
    var nextByBeat: Duration?
    /// When to send a request at the latest, also without room: a wake-up may be lost, and the server forgets whom to
    /// notify, and the device.
    var askAt = Duration.zero
    /// Whether wake-ups arrive.
    var isNotified = false
    var failure: QueueListenError?
    var sleeper: Task<Void, Never>?

    /// How many more jobs may run. A handler that does not end although its job is lost counts.
    func room(of concurrency: Int) -> Int { graceEnd == nil ? max(0, concurrency - handlers.count) : 0 }

    /// When to send a request.
    private func due(hasRoom: Bool) -> Duration {
        if graceEnd != nil { return lifeEnd }
        if !hasRoom { return askAt }
        return mayHaveMore ? .zero : min(askAt, next ?? askAt, nextByBeat ?? askAt)
    }

    /// - Returns: what to do next, and the handlers to cancel before.
    mutating func nextStep(now: Duration, concurrency: Int) -> (Step, cancelled: [Task<Void, Never>]) {
        let isStopping = graceEnd != nil
        if now >= lifeEnd { return (isStopping ? .leave(isAlive: false) : .begin, loseAll()) }
        let due = due(hasRoom: room(of: concurrency) > 0)
        if !ends.isEmpty || !isStopping && due <= now { return (.work, []) }
        if isStopping, running.isEmpty { return (.leave(isAlive: true), []) }
        let end = min(lifeEnd, due)
        guard let graceEnd else { return (.sleep(until: end), []) }
        if now < graceEnd { return (.sleep(until: min(end, graceEnd)), []) }
        return (.sleep(until: end), overdue(at: now))
    }

    /// The handlers to cancel, because this worker stops and has waited long enough for them.
    func overdue(at now: Duration) -> [Task<Void, Never>] {
        guard let graceEnd, graceEnd <= now else { return [] }
        return running.values.map(\.task)
    }

    /// Begins a life.
    mutating func begin(_ process: String, until end: Duration) {
        (self.process, number, mayHaveMore, lifeEnd) = (process, 0, true, end)
    }

    /// Ends the life of this worker.
    ///
    /// - Returns: the handlers to cancel.
    mutating func loseAll() -> [Task<Void, Never>] {
        defer { (running, ends, lifeEnd) = ([:], [], .zero) }
        return running.values.map(\.task)
    }

    /// Loses jobs that the server does not know any more, unless they have been taken again since.
    ///
    /// - Returns: the handlers to cancel.
    mutating func lose(_ tags: [UInt64], asOf fences: [UInt64: Int]) -> [Task<Void, Never>] {
        tags.compactMap { tag in
            guard let job = running[tag], job.fence == fences[tag] else { return nil }
            running[tag] = nil
            return job.task
        }
    }

    /// Notes that an operator has cancelled jobs.
    ///
    /// - Returns: the handlers to cancel.
    mutating func cancel(_ tags: [UInt64]) -> [Task<Void, Never>] {
        tags.compactMap { tag in
            running[tag]?.isCancelled = true
            return running[tag]?.task
        }
    }

    /// Adds a job that was taken.
    ///
    /// - Parameter start: starts its handler, which calls ``handlerEnded(_:)`` with the number. The handler of an
    ///   earlier run of the same job, which is lost, must end before.
    mutating func add(_ job: TakenJob, start: (_ number: Int, _ earlier: Task<Void, Never>?) -> Task<Void, Never>) {
        let earlier = running[job.tag]?.task
        earlier?.cancel()
        handlerCount += 1
        let task = start(handlerCount, earlier)
        (handlers[handlerCount], running[job.tag]) = (task, Running(fence: job.fence, task: task))
        fence = max(fence, job.fence)
    }

    /// Notes that Redis has confirmed the effect of a job, unless it was lost meanwhile.
    mutating func confirmEffect(of tag: UInt64, fence: Int) {
        if running[tag]?.fence == fence { running[tag]?.hadEffect = true }
    }

    mutating func handlerEnded(_ number: Int) { handlers[number] = nil }

    /// Notes what has become of a job, to report it.
    ///
    /// - Returns: the run that has ended; `nil` if the job was lost meanwhile.
    mutating func note(_ end: JobEnd) -> Running? {
        guard let run = running[end.tag], run.fence == end.fence else { return nil }
        running[end.tag] = nil
        // Whatever the handler did afterwards.
        ends.append(run.hadEffect ? JobEnd(tag: end.tag, fence: end.fence, outcome: .hadEffect) : end)
        return run
    }
}
