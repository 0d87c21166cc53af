// The operations on locks and leased permits.
import RedisDC
import Synchronization
import Verification

/// Acquires locks, holds them for a while, and records when it has read that it holds them.
struct LockWork {
    let work: Work

    func step(_ choices: inout Choices) async {
        let names = Workload.mutexes + [Workload.cohort, Workload.readWriteLock]
        let name = names.randomElement(using: &choices)!
        let timeout = choices.milliseconds(5...2000)
        let isReader = Bool.random(using: &choices)
        let coordinator = work.coordinator
        let called = Recorder.now
        if work.defect == .unsafeLock, name == Workload.mutexes[0] { return await holdWithoutLock(name, called) }
        do {
            if name == Workload.readWriteLock {
                let lock = try coordinator.readWriteLock(name)
                let lease =
                    if isReader {
                        try await lock.readLock(timeout: timeout, durability: work.durability)
                    } else {
                        try await lock.writeLock(timeout: timeout, durability: work.durability)
                    }
                let count = isReader ? 1 : Workload.readWritePermits
                await Holding(work: work, lease: lease, verb: .lock, name: name, count: count, called: called)
                    .hold(of: Workload.readWritePermits, &choices)
            } else {
                let mutex = try coordinator.mutex(
                    name, locality: name == Workload.cohort ? .cohort(limit: 8, linger: .milliseconds(20)) : .strict)
                let acquiring = Task { [work] in try await mutex.lock(timeout: timeout, durability: work.durability) }
                if choices.oneIn(10) {
                    try? await Task.sleep(for: choices.milliseconds(0...20))
                    acquiring.cancel()
                }
                let lease = try await acquiring.value
                await Holding(work: work, lease: lease, verb: .lock, name: name, count: 1, called: called)
                    .hold(of: 1, &choices)
            }
        } catch {
            work.failed(error)
        }
    }

    private func holdWithoutLock(_ name: String, _ called: UInt64) async {
        let operation = work.recorder.nextOperation()
        let process = work.recorder.process
        let time = Recorder.now
        work.recorder.record(
            Event(
                .enter, at: time, process: process, name, operation: operation, verb: .lock, called: called,
                fence: time, count: 1, limit: 1))
        // The others come in the meantime, also on a busy machine.
        try? await Task.sleep(for: .milliseconds(100))
        work.recorder.record(Event(.held, at: Recorder.now, process: process, operation: operation))
    }
}

/// One lease, from its grant to its release.
struct Holding {
    let work: Work
    let lease: Lease
    let verb: Event.Verb
    let name: String
    let count: Int
    let called: UInt64

    /// Holds the lease for a random time and releases it.
    func hold(of limit: Int, _ choices: inout Choices) async {
        let (recorder, process) = (work.recorder, work.recorder.process)
        let operation = recorder.nextOperation()
        let isRecorded = Once()
        @Sendable func lost() {
            if work.defect == .ignoresLoss { return }
            if isRecorded.isFirst() {
                recorder.record(Event(.lost, at: Recorder.now, process: process, operation: operation))
            }
        }
        // A time is read before the lease: then the lease was held at that time.
        let start = Recorder.now
        guard lease.isHeld else { return await release(lost) }
        recorder.record(
            Event(
                .enter, at: start, process: process, name, operation: operation, verb: verb, called: called,
                fence: lease.fence, count: count, limit: limit, note: name == Workload.cohort ? Event.turn : nil))
        lease.onLoss { _ in lost() }
        // Some holders stay during a failover.
        let length = choices.oneIn(20) ? 500...2000 : choices.oneIn(5) ? 10...60 : 0...5
        let end = ContinuousClock.now + choices.milliseconds(length)
        while true {
            try? await Task.sleep(for: min(.milliseconds(50), max(.zero, end - .now)))
            let time = Recorder.now
            guard lease.isHeld || work.defect == .ignoresLoss else { break }
            recorder.record(Event(.held, at: time, process: process, operation: operation))
            if ContinuousClock.now >= end { break }
        }
        await release(lost)
    }

    private func release(_ lost: @Sendable () -> Void) async {
        do throws(RedisDCError) { try await lease.release() } catch {
            if error.code == .lost { lost() } else { work.failed(error) }
        }
    }
}

/// Something that happens once.
private final class Once: Sendable {
    private let flag = Atomic<Bool>(false)

    func isFirst() -> Bool { !flag.exchange(true, ordering: .acquiringAndReleasing) }
}
