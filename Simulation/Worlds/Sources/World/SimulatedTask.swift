// A task of a process, which uses one primitive after the other.
@testable import RedisDC

/// A task that begins random operations until the world closes.
final class SimulatedTask {
    private let process: SimulatedProcess
    private unowned let world: World

    init(of process: SimulatedProcess) {
        (self.process, world) = (process, process.world)
    }

    func begin() {
        process.tasks += 1
        next()
    }

    /// Goes on after a pause.
    private func next() {
        world.after(world.random.time(100...200_000)) { world in
            self.process.run { process in
                if world.isOpen { self.use() } else { process.tasks -= 1 }
            }
        }
    }

    private func use() {
        let number = Int.random(in: 0..<2, using: &world.random)
        switch Int.random(in: 0..<6, using: &world.random) {
        case 0: lease(Resource(name: "mutex \(number)", kind: .mutex, permits: 1), 1, of: 1)
        case 1:
            let count = Int.random(in: 1...3, using: &world.random)
            lease(Resource(name: "pool \(number)", kind: .semaphore, permits: 3), count, of: 3)
        case 2:
            let all = 1_000_000
            let lock = Resource(name: "read-write \(number)", kind: .readWriteLock, permits: all)
            lease(lock, world.random.isOne(in: 3) ? all : 1, of: all)
        case 3: consume(tokens(number))
        case 4: signal(tokens(number))
        default: arrive(Resource(name: "barrier \(number)", kind: .barrier, permits: 2, policy: "o"))
        }
    }

    private func tokens(_ number: Int) -> Resource {
        world.judge { $0.declare("tokens \(number)", permits: 2) }
        return Resource(name: "tokens \(number)", kind: .semaphore, permits: 2)
    }

    private var timeout: Duration {
        .microseconds(world.random.isOne(in: 8) ? 0 : world.random.time(1000...(world.isOpen ? 8_000_000 : 2_000_000)))
    }

    /// Cancels a wait at a random time, sometimes.
    private func cancelSometimes(_ id: UInt64) {
        guard world.random.isOne(in: 4) else { return }
        world.after(world.random.time(100...1_000_000)) { _ in self.process.run { $0.cancel(id) } }
    }

    private func acquire(
        _ request: Acquire, onLoss: @escaping (RedisDCError) -> Void = { _ in },
        _ finish: @escaping (EngineStateMachine.Finish) -> Void
    ) {
        // A party that arrives must wait.
        let timeout = request.action == .arrive ? max(timeout, .milliseconds(1)) : timeout
        let request = timeout == .zero ? request.withoutQueueing : request
        let id = process.acquire(request, timeout: timeout == .zero ? nil : timeout, onLoss: onLoss, finish)
        cancelSometimes(id)
    }

    // MARK: Leases

    private func lease(_ resource: Resource, _ count: Int, of capacity: Int) {
        nonisolated(unsafe) var holder: Int?
        acquire(Acquire(resource: resource, count: count, mode: .lease)) { [self] _ in
            if let number = holder { world.judge { $0.leave(number, isToldOfLoss: true) } }
        } _: { [self] result in
            guard case .success(.granted(let grant)) = result else { return next() }
            world.note("\(process.name) has \(count) of \(resource.name), fence \(grant.fence)")
            world.judge {
                holder = $0.enter(
                    resource.name, count, of: capacity, fence: grant.fence, process, claim: grant.claim)
            }
            hold(grant.claim, holder!)
        }
    }

    private func hold(_ claim: UInt64, _ holder: Int) {
        world.after(world.random.time(100...3_000_000)) { [self] world in
            process.run { process in
                world.judge { $0.finish(holder) }
                process.release(claim) { result in
                    let isLost =
                        if case .failure(let error) = result { error.code == .lost || error.mayHaveRun } else { false }
                    world.judge { $0.leave(holder, isToldOfLoss: isLost) }
                    self.next()
                }
            }
        }
    }

    // MARK: Permits that are consumed

    private func consume(_ resource: Resource) {
        // Until the result is here, the process may die with the permit.
        world.judge { $0.count(resource.name) { $0.maybeConsumed += 1 } }
        acquire(Acquire(resource: resource)) { [self] result in
            switch result {
            case .success(.granted):
                world.judge { $0.count(resource.name) { $0.isConsumed() } }
                process.consumes(resource.name)
            case .failure(let error) where error.mayHaveRun: break
            default: world.judge { $0.count(resource.name) { $0.maybeConsumed -= 1 } }
            }
            next()
        }
    }

    private func signal(_ resource: Resource) {
        world.judge { $0.count(resource.name) { $0.maybeSignalled += 1 } }
        process.call(Signal(resource, count: 1)) { [self] result in
            switch result {
            case .success:
                world.judge { $0.count(resource.name) { $0.isSignalled() } }
            case .failure(let error) where error.mayHaveRun: break
            default: world.judge { $0.count(resource.name) { $0.maybeSignalled -= 1 } }
            }
            next()
        }
    }

    // MARK: Barriers

    private func arrive(_ resource: Resource) {
        acquire(Acquire(resource: resource, action: .arrive)) { [self] result in
            if case .success(.granted(let grant)) = result {
                let arrival = Arrival(grant)
                world.judge {
                    $0.passes(resource.name, parties: 2, generation: arrival.generation, index: arrival.index)
                }
            }
            next()
        }
    }
}
