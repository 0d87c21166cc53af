// The operations on semaphores and barriers.
import RedisDC
import Verification

/// Leases permits of a pool, and signals and consumes the permits of other semaphores.
struct SemaphoreWork {
    let work: Work

    func lease(_ choices: inout Choices) async {
        let called = Recorder.now
        let count = Int.random(in: 1...2, using: &choices)
        do {
            let pool = try work.coordinator.semaphore(Workload.pool, permits: Workload.poolPermits)
            let lease = try await pool.acquireLease(
                count, timeout: choices.milliseconds(5...2000), durability: work.durability)
            await Holding(work: work, lease: lease, verb: .lease, name: Workload.pool, count: count, called: called)
                .hold(of: Workload.poolPermits, &choices)
        } catch {
            work.failed(error)
        }
    }

    func consume(_ choices: inout Choices) async {
        let name = Workload.tokens(at: Recorder.now)
        let count = Int.random(in: 1...2, using: &choices)
        let verb: Event.Verb = Bool.random(using: &choices) ? .signal : .wait
        let operation = work.begin(verb, name, count: count)
        do {
            let tokens = try work.coordinator.semaphore(name, permits: Workload.tokenPermits)
            if verb == .signal {
                let isWrong = work.defect == .extraSignal && choices.oneIn(5)
                try await tokens.signal(isWrong ? count + 1 : count)
            } else {
                try await tokens.wait(count, timeout: choices.milliseconds(0...500))
            }
            work.end(operation, .ok)
        } catch {
            work.end(operation, error.mayHaveRun ? .unknown : .none)
            work.failed(error)
        }
    }
}

/// Arrives at barriers.
struct BarrierWork {
    let work: Work

    func step(_ choices: inout Choices) async {
        // Several processes must meet, so their tasks choose among few barriers.
        let name = "barrier-\(Int.random(in: 1...2, using: &choices))"
        let operation = work.begin(.arrive, name, limit: work.parties)
        if work.defect == .skipsBarrier, choices.oneIn(5) {
            return work.end(operation, .ok, generation: UInt64(Recorder.now), index: 0)
        }
        do {
            let barrier = try work.coordinator.barrier(name, parties: work.parties)
            let arrival = try await barrier.arriveAndWait(timeout: choices.milliseconds(50...2000))
            work.end(operation, .ok, generation: arrival.generation, index: arrival.index)
        } catch {
            work.end(operation, error.mayHaveRun ? .unknown : .none)
            work.failed(error)
        }
    }
}
