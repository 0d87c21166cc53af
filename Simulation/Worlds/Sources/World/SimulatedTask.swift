// A task of a process, which uses one primitive after the other, and what the uses of all primitives need.
@testable import RedisDC

/// A task that begins random operations until the world closes. `Tasks/` has what it does with each family of primitives.
final class SimulatedTask {
    typealias Finish = EngineStateMachine.Finish
    typealias Grant = EngineStateMachine.Grant

    let process: SimulatedProcess
    unowned let world: World
    /// The number of the task in its process.
    let taskNumber: Int

    init(of process: SimulatedProcess) {
        (self.process, world, taskNumber) = (process, process.world, process.tasks)
        process.tasks += 1
    }

    func begin() {
        // A world is used by one thread.
        nonisolated(unsafe) let task = self
        Task(executorPreference: world.executor) { await task.live() }
    }

    /// Begins a task that does one thing.
    func begin(_ body: @escaping @Sendable (SimulatedTask) async throws -> Void) {
        // A world is used by one thread.
        nonisolated(unsafe) let task = self
        Task(executorPreference: world.executor) {
            do {
                try await body(task)
                task.process.tasks -= 1
            } catch {}
        }
    }

    private func live() async {
        do {
            while true {
                try await pause(100...world.plan.pause)
                guard world.isOpen, !process.isLeaving else { break }
                try await world.uses.randomElement(using: &world.random)!.make(self)
            }
            process.tasks -= 1
        } catch {}
    }

    // MARK: Chance

    func isOne(in count: Int) -> Bool { world.random.isOne(in: count) }

    func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &world.random) }

    /// The number of one of the resources of a kind.
    var resourceNumber: Int { number(0...(world.plan.resources - 1)) }

    /// A limit for a wait; `.zero` for a single attempt.
    var timeout: Duration { isOne(in: 8) ? .zero : longTimeout }

    /// A limit for a wait.
    var longTimeout: Duration { .microseconds(world.random.time(1000...(world.isOpen ? 8_000_000 : 2_000_000))) }

    // MARK: Time

    /// Suspends the task for a random time, and for as long as the process is stopped.
    func pause(_ range: ClosedRange<Int64>) async throws { try await sleep(world.random.time(range)) }

    func sleep(_ time: Time) async throws {
        _ = try await world.executor.result { done in
            world.after(time, .step(process, taskNumber)) { _ in self.process.run { _ in done(true) } }
        }
    }

    // MARK: Operations

    /// Requests permits or a place, and sometimes cancels the request.
    ///
    /// - Parameter timeout: the limit of the wait; `.zero` for a single attempt, `nil` for none.
    func acquire(
        _ request: Acquire, timeout: Duration?, isCancelled: Bool? = nil,
        onLoss: @escaping (RedisDCError) -> Void = { _ in }
    ) async throws -> Finish {
        let request = timeout == .zero ? request.withoutQueueing : request
        let isCancelled = isCancelled ?? isOne(in: 4)
        return try await world.executor.result { done in
            let id = process.acquire(request, timeout: timeout == .zero ? nil : timeout, onLoss: onLoss, done)
            world.exploration?.waits[process.number, default: [:]][taskNumber] = id
            if isCancelled {
                let longest: Time = world.plan.isHasty ? 20_000 : 1_000_000
                world.after(world.random.time(100...longest)) { _ in self.process.run { $0.cancel(id) } }
            }
        }
    }

    func call(_ operation: any EngineOperation) async throws -> Finish {
        try await world.executor.result { process.call(operation, $0) }
    }

    func use(_ claim: UInt64, _ operation: (HeldClaim) -> any EngineOperation) async throws -> Finish {
        try await world.executor.result { process.use(claim, operation, $0) }
    }

    // MARK: The history

    func recordCall(_ verb: String, _ name: String, count: Int? = nil, parties: Int? = nil) -> Int? {
        var operation: Int?
        world.record { operation = $0.begins(verb, name, count: count, parties: parties, process) }
        return operation
    }

    func recordEnd(_ operation: Int?, _ outcome: String, _ arrival: Arrival? = nil) {
        world.record { $0.ends(operation, outcome, arrival, process) }
    }

    // MARK: Leases

    /// A lease of the task, and what the judge knows of it.
    final class Held {
        let name: String
        let claim: UInt64
        let fence: UInt64
        /// The judge's number of the holder; 0 before it has one.
        fileprivate(set) var holder = 0
        fileprivate(set) var loss: RedisDCError?
        /// Its number in the history.
        fileprivate var recorded: Int?
        /// Whether the section is over that the history knows.
        fileprivate var isOver = false

        fileprivate init(_ name: String, _ grant: Grant) {
            (self.name, claim, fence) = (name, grant.claim, grant.fence)
        }
    }

    /// Acquires a lease, and enters the section that it protects.
    ///
    /// - Returns: `nil` if it was not granted.
    func enter(
        _ request: Acquire, _ room: Judge.Room, timeout: Duration?, isCancelled: Bool? = nil
    ) async throws -> Held? {
        var held: Held?
        let process = process
        var early: RedisDCError?
        let called = world.now
        let result = try await acquire(request, timeout: timeout, isCancelled: isCancelled) { [world] error in
            early = error
            held?.loss = error
            guard let held else { return }
            world.judge { $0.leave(held.holder, isToldOfLoss: true) }
            world.record { $0.lease(held.recorded, is: "lost", process) }
        }
        guard let grant = result.grant else { return nil }
        let now = Held(request.name, grant)
        (held, now.loss) = (now, early)
        world.note("\(process.name) has \(request.count) of \(request.name), fence \(grant.fence)")
        if now.loss == nil {
            world.record { now.recorded = $0.enters(request, room, fence: grant.fence, called: called, process) }
            world.judge {
                now.holder = $0.enter(
                    room, fence: grant.fence, process, holds: { process.holds(grant.claim) },
                    isStored: { process.isStored(grant.claim) })
            }
        }
        return now
    }

    /// Leaves the section that a lease protects, and releases it.
    func leave(_ held: Held) async throws {
        finish(held)
        let number = process.machine.claims[held.claim]?.number
        let result: Finish = try await world.executor.result { process.release(held.claim, $0) }
        told(held, result, isDoubtful: number.map(process.takeDoubt) ?? false)
    }

    /// The section that a lease protects is over. The holder has looked at its lease a moment ago.
    func finish(_ held: Held) {
        world.judge { $0.finish(held.holder) }
        if !held.isOver, held.loss == nil, process.holds(held.claim) {
            world.record { $0.lease(held.recorded, is: "held", process) }
        }
        held.isOver = true
    }

    /// Notes what the end of a lease has told its holder.
    ///
    /// - Parameter isDoubtful: whether the reply to a first release was lost. Then the second one succeeds whether the first
    ///   one has released the lease or the lease was lost.
    func told(_ held: Held, _ result: Finish, isDoubtful: Bool = false) {
        if result.error?.code == .lost { world.record { $0.lease(held.recorded, is: "lost", process) } }
        let isLost = result.error.map { $0.code == .lost || $0.mayHaveRun } ?? isDoubtful
        world.judge { $0.leave(held.holder, isToldOfLoss: isLost) }
    }

    /// Acquires a lease, keeps it for a while, and releases it.
    func lease(_ request: Acquire, _ room: Judge.Room, timeout: Duration?) async throws {
        guard let held = try await enter(request, room, timeout: timeout) else { return }
        try await pause(100...world.plan.hold)
        try await leave(held)
    }
}

extension EngineStateMachine.Finish {
    var grant: EngineStateMachine.Grant? { if case .success(.granted(let grant)) = self { grant } else { nil } }
    var answer: EngineReply? { if case .success(.answered(let reply)) = self { reply } else { nil } }
    var error: RedisDCError? { if case .failure(let error) = self { error } else { nil } }
    /// Whether it is unknown what the server has done.
    var isUnknown: Bool { error?.mayHaveRun ?? false }
}
