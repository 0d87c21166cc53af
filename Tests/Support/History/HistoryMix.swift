// A random mix of acquiring and releasing operations, recorded for the linearizability check.
import Foundation
public import RedisDC
import Synchronization
import TestRandom

/// A random mix of operations by several tasks of one process.
public struct HistoryMix: Sendable {
    /// The permits or parties of each resource, by name.
    public static let resources = [
        "door0": 1, "door1": 1, "pool": 3, "tokens": 2, "catalogue": ReadWriteLock.maxReaders, "meeting": 2,
    ].merging((0..<latches).map { ("latch\($0)", latchCount) }) { $1 }

    /// Those that some processes keep for themselves for a while.
    public static let mutexes: Set<String> = ["door0", "door1"]

    private static let latches = 12
    private static let latchCount = 4

    let coordinator: Coordinator
    let recorder: HistoryRecorder
    let seed: UInt64
    private let calls = Calls()

    /// Creates a mix.
    ///
    /// - Parameters:
    ///   - coordinator: the coordinator that performs the operations.
    ///   - recorder: the recorder of the operations' history.
    ///   - seed: the seed of the random choices.
    public init(coordinator: Coordinator, recorder: HistoryRecorder, seed: UInt64) {
        (self.coordinator, self.recorder, self.seed) = (coordinator, recorder, seed)
    }

    /// Runs tasks that perform a number of operations each, and prints the seed first.
    public func run(tasks: Int, steps: Int) async throws {
        printSeed(seed, of: "HistoryMix")
        let watching = Task { [coordinator, recorder] in
            for await event in coordinator.events() {
                if case .sessionLost = event { recorder.lostSession() }
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<tasks {
                group.addTask {
                    var generator = SplitMix(seed: seed &* 31 &+ UInt64(task))
                    for _ in 0..<steps { try await step(task, &generator) }
                }
            }
            try await group.waitForAll()
        }
        watching.cancel()
    }

    private func step(_ task: Int, _ generator: inout SplitMix) async throws {
        let pause = Duration.microseconds(Int.random(in: 0...1500, using: &generator))
        // From 1 ms, usually too short, to 256 ms.
        let timeout = Duration.microseconds(1000 << Int.random(in: 0...8, using: &generator))
        let door = "door\(Int.random(in: 0...1, using: &generator))"
        // An attempt may fail while a mutex stays with another process unused, which the model does not know.
        let locality: Locality = seed % 2 == 0 ? .strict : .cohort(limit: 2, linger: .zero)
        let count = Int.random(in: 1...2, using: &generator)
        switch Int.random(in: 0..<18, using: &generator) {
        case 0..<3:
            let mutex = try coordinator.mutex(door, locality: locality)
            try await lease(Acquire(task, .take, door, 1, timeout), pause) {
                try await mutex.lock(timeout: timeout)
            }
        case 3:
            let mutex = try coordinator.mutex(door, locality: locality)
            try await lease(Acquire(task, .tryTake, door, 1), pause) { try await mutex.tryLock() }
        case 4:
            let mutex = try coordinator.mutex(door, locality: locality)
            try await cancelled(Acquire(task, .take, door, 1), after: pause) { request in
                try await lease(request, pause) { try await mutex.lock() }
            }
        case 5..<7:
            let pool = try coordinator.semaphore("pool", permits: 3)
            try await lease(Acquire(task, .take, "pool", count, timeout), pause) {
                try await pool.acquireLease(count, timeout: timeout)
            }
        case 7:
            let pool = try coordinator.semaphore("pool", permits: 3)
            try await lease(Acquire(task, .tryTake, "pool", count), pause) {
                do { return try await pool.acquireLease(count, timeout: .zero) } catch let error as RedisDCError {
                    // Corresponds to the `nil` of `tryLock`.
                    if error.code == .timedOut { return nil }
                    throw error
                }
            }
        case 8..<10:
            let tokens = try coordinator.semaphore("tokens", permits: 2)
            try await call(Acquire(task, .signal, "tokens", count)) {
                try await tokens.signal(count)
                return true
            }
        case 10:
            let tokens = try coordinator.semaphore("tokens", permits: 2)
            let verb = HistoryRecorder.Verb.tryWait
            try await call(Acquire(task, verb, "tokens", count)) { try await tokens.tryWait(count) }
        case 11..<13:
            // A reader takes one permit, a writer takes all.
            let lock = try coordinator.readWriteLock("catalogue")
            let isReader = count == 1
            let size = isReader ? 1 : ReadWriteLock.maxReaders
            try await lease(Acquire(task, .take, "catalogue", size, timeout), pause) {
                isReader ? try await lock.readLock(timeout: timeout) : try await lock.writeLock(timeout: timeout)
            }
        case 13..<15:
            let name = "latch\(Int.random(in: 0..<Self.latches, using: &generator))"
            let latch = try coordinator.latch(name, count: Self.latchCount)
            if count == 1 {
                let id = begin(Acquire(task, .down, name, 1))
                do { recorder.back(id, .ok, value: try await latch.countDown()) } catch { try note(error, of: id) }
            } else {
                try await call(Acquire(task, .pass, name, 1, timeout)) {
                    try await latch.wait(timeout: timeout)
                    return true
                }
            }
        case 15:
            let barrier = try coordinator.barrier("meeting", parties: 2)
            let id = begin(Acquire(task, .arrive, "meeting", 1, timeout))
            do {
                let arrival = try await barrier.arriveAndWait(timeout: timeout)
                recorder.back(id, .ok, value: Int(arrival.generation) * 1024 + arrival.index)
            } catch { try note(error, of: id) }
        default:
            let tokens = try coordinator.semaphore("tokens", permits: 2)
            if Bool.random(using: &generator) {
                try await call(Acquire(task, .wait, "tokens", count, timeout)) {
                    try await tokens.wait(count, timeout: timeout)
                    return true
                }
            } else {
                try await cancelled(Acquire(task, .wait, "tokens", count), after: pause) { request in
                    try await call(request) {
                        try await tokens.wait(count)
                        return true
                    }
                }
            }
        }
    }

    // MARK: Recording

    /// An operation that a task is about to start.
    private struct Acquire {
        var id = 0
        var task: Int
        var verb: HistoryRecorder.Verb
        var resource: String
        var count: Int
        var timeout: Duration?

        init(
            _ task: Int, _ verb: HistoryRecorder.Verb, _ resource: String, _ count: Int, _ timeout: Duration? = nil
        ) {
            (self.task, self.verb, self.resource) = (task, verb, resource)
            (self.count, self.timeout) = (count, timeout)
        }
    }

    /// Records the start of an operation.
    ///
    /// - Returns: the ID of the operation.
    private func begin(_ request: Acquire, claim: Int = 0) -> Int {
        let id = request.id == 0 ? calls.next() : request.id
        recorder.call(
            id, task: request.task, request.verb, request.resource, request.count, claim: claim,
            timeout: request.timeout)
        return id
    }

    private func call(_ request: Acquire, _ body: () async throws -> Bool) async throws {
        let id = begin(request)
        do { recorder.back(id, try await body() ? .ok : .refused) } catch { try note(error, of: id) }
    }

    /// Acquires a lease, holds it for a while, and releases it.
    private func lease(_ request: Acquire, _ pause: Duration, _ body: () async throws -> Lease?) async throws {
        let id = begin(request)
        let lease: Lease
        do {
            guard let found = try await body() else { return recorder.back(id, .refused) }
            recorder.back(id, .ok, fence: found.fence)
            lease = found
        } catch { return try note(error, of: id) }
        // In a cancelled task the pause ends early.
        try? await Task.sleep(for: pause)
        recorder.held(id) { lease.isHeld }
        let release = begin(Acquire(request.task, .release, request.resource, request.count), claim: id)
        do {
            try await lease.release()
            recorder.back(release, .ok)
        } catch { try note(error, of: release) }
    }

    private func cancelled(
        _ request: Acquire, after pause: Duration,
        _ body: @escaping @Sendable (Acquire) async throws -> Void
    ) async throws {
        var request = request
        request.id = calls.next()
        let (id, numbered) = (request.id, request)
        let waiting = Task { try await body(numbered) }
        try await Task.sleep(for: pause)
        recorder.cancel(id)
        waiting.cancel()
        try await waiting.value
    }

    /// Records the outcome of a failed operation.
    ///
    /// - Throws: the error if no outcome corresponds to it.
    private func note(_ error: any Error, of id: Int) throws {
        guard let error = error as? RedisDCError else { throw error }
        switch error.code {
        case _ where error.mayHaveRun: recorder.back(id, .unknown)
        case .timedOut: recorder.back(id, .timedOut)
        case .cancelled: recorder.back(id, .cancelled)
        case .lost: recorder.back(id, .lost)
        default: throw error
        }
    }
}

/// A counter that numbers the operations of a process.
private final class Calls: Sendable {
    private let last = Atomic(0)
    func next() -> Int { last.add(1, ordering: .relaxed).newValue }
}
