// The state that is read after all processes have ended.
import QueueListen
import RedisDC
import Verification

/// Records whether everything is free, the permits that are left, and the messages that nobody has read yet.
struct FinalReadings {
    let coordinator: Coordinator
    let office: PostOffice
    let recorder: Recorder
    let families: Set<Family>
    let processes: Int
    let ttl: Int
    let partitions: Int

    /// How long sessions of killed processes may last, with a reserve for a deployment that is failing over.
    private var limit: Duration { .seconds(4 * ttl + 20) }

    /// Records the readings.
    ///
    /// - Parameter tokens: the semaphores for signals that the run has used.
    /// - Throws: `RedisDCError` or `QueueListenError` if Redis cannot be read.
    func read(tokens: Set<String>) async throws {
        if families.contains(.locks) {
            for name in Workload.mutexes + [Workload.cohort] {
                try await free(name) { try await coordinator.mutex(name).lock(timeout: limit) }
            }
            let name = Workload.readWriteLock
            try await free(name) { try await coordinator.readWriteLock(name).writeLock(timeout: limit) }
        }
        if families.contains(.semaphores) {
            try await untilSessionsHaveEnded()
            let pool = try coordinator.semaphore(Workload.pool, permits: Workload.poolPermits)
            try await free(Workload.pool) { try await pool.acquireLease(Workload.poolPermits, timeout: limit) }
            try await value(Workload.pool, Workload.poolPermits)
            for name in tokens.sorted() { try await value(name, Workload.tokenPermits) }
        }
        if families.contains(.mail) { try await drain() }
    }

    private func free(_ name: String, _ acquire: () async throws -> Lease) async throws {
        var outcome = Event.Outcome.ok
        do { try await acquire().release() } catch let error as RedisDCError {
            guard error.code == .timedOut else { throw error }
            outcome = .none
        }
        recorder.record(Event(.free, at: Recorder.now, process: recorder.process, name, outcome: outcome))
    }

    private func value(_ name: String, _ created: Int) async throws {
        let value = try await coordinator.semaphore(name, permits: created).value
        recorder.record(Event(.value, at: Recorder.now, process: recorder.process, name, count: value, limit: created))
    }

    /// The permits that a killed process has consumed and not confirmed are free when its session has ended.
    private func untilSessionsHaveEnded() async throws {
        let end = ContinuousClock.now + limit
        var sessions = Int.max
        while ContinuousClock.now < end {
            sessions = try await coordinator.list().sessions
            // One of this process for each partition.
            if sessions <= partitions { break }
            try await Task.sleep(for: .milliseconds(200))
        }
        recorder.record(
            Event(
                .free, at: Recorder.now, process: recorder.process, "sessions",
                outcome: sessions <= partitions ? .ok : Event.Outcome.none))
    }

    // MARK: Mailboxes

    private func drain() async throws {
        // With several partitions, a post office finishes what a killed process has left unfinished.
        let end = ContinuousClock.now + (partitions > 1 ? .seconds(10) : .zero)
        var cursors: [Int: Cursor] = [:]
        var isFirst = true
        while true {
            var hasRead = false
            for slot in 0..<processes {
                if isFirst { record(.reads, slot) }
                if try await read(slot, &cursors[slot]) { hasRead = true }
            }
            isFirst = false
            if !hasRead, ContinuousClock.now >= end { break }
            if !hasRead { try await Task.sleep(for: .milliseconds(200)) }
        }
        for slot in 0..<processes { record(.drained, slot) }
    }

    private func record(_ kind: Event.Kind, _ slot: Int) {
        recorder.record(
            Event(
                kind, at: Recorder.now, process: recorder.process, Workload.mailbox(ofSlot: slot),
                device: Workload.device(ofSlot: slot)))
    }

    /// Reads what a device has not acknowledged, and returns whether there was anything.
    private func read(_ slot: Int, _ cursor: inout Cursor?) async throws -> Bool {
        let (name, device) = (Workload.mailbox(ofSlot: slot), Workload.device(ofSlot: slot))
        var hasRead = false
        while true {
            let delivery = try await office.mailbox(name).listen(after: cursor, device: device, timeout: .zero)
            cursor = delivery.cursor
            switch delivery.status {
            case .messages(let messages):
                if messages.isEmpty { return hasRead }
                for message in messages {
                    recorder.record(MailWork.event(.message(message), name, device, recorder.process))
                }
            case .timedOut: return hasRead
            case .reset: recorder.record(MailWork.event(.gap(.reset), name, device, recorder.process))
            case .forked: recorder.record(MailWork.event(.gap(.forked), name, device, recorder.process))
            case .truncated(let first):
                recorder.record(MailWork.event(.gap(.truncated(first: first)), name, device, recorder.process))
            case .superseded: return hasRead
            }
            hasRead = true
        }
    }
}
