// Leases of mutexes, semaphores and read-write locks: nobody is inside together with a task that excludes it.
@testable import RedisDC

extension SimulatedTask {
    func useMutex() async throws {
        let name = "mutex \(resourceNumber)"
        try await lease(.mutex(name), Judge.Room(name: name), timeout: isOne(in: 4) ? nil : timeout)
    }

    /// A pool of 3 permits, rarely described as one of 4, which is refused while others know it as one of 3.
    func usePool() async throws {
        let (number, count) = (resourceNumber, number(1...3))
        let permits = isOne(in: 20) ? 4 : 3
        let name = "pool \(number)"
        let policy: Unicode.Scalar = number == 0 ? "f" : "b"
        let resource = Resource(name: name, kind: .semaphore, permits: permits, policy: policy)
        let room = Judge.Room(name: name, size: count, capacity: permits)
        try await lease(Acquire(resource: resource, count: count, mode: .lease), room, timeout: timeout)
    }

    /// A lock that prefers nobody, readers or writers, depending on its number. A writer may become a reader.
    func useReadWriteLock() async throws {
        let number = resourceNumber
        let all = ReadWriteLock.maxReaders
        let name = "read-write \(number)"
        let policy: Unicode.Scalar = ["f", "r", "w"][(number + Int(world.plan.pause)) % 3]
        let isWriter = isOne(in: 3)
        let request = Acquire(
            resource: Resource(name: name, kind: .readWriteLock, permits: all, policy: policy),
            count: isWriter ? all : 1, mode: .lease, isPreferred: policy == (isWriter ? "w" : "r"))
        let room = Judge.Room(name: name, size: isWriter ? all : 1, capacity: all)
        guard let held = try await enter(request, room, timeout: timeout) else { return }
        try await pause(100...world.plan.hold)
        if isWriter, isOne(in: 3) {
            finish(held)
            if case .done(let count, _)? = try await use(held.claim, { Reduce(held: $0, keep: 1) }).answer, count > 0 {
                world.judge { $0.goOn(held.holder, size: 1) }
                try await pause(100...world.plan.hold)
            }
        }
        try await leave(held)
    }

    /// Several mutexes for one section, as `withLocks` acquires them: in one order, and all or none.
    func useSeveralLocks() async throws {
        let numbers = (0..<(world.plan.resources + 1)).filter { _ in !isOne(in: 3) }
        let deadline = world.now + longTimeout.microseconds
        var all: [Held] = []
        for number in numbers {
            let name = number == 0 ? "mutex 0" : "lock \(number)"
            let rest = Duration.microseconds(max(1000, deadline - world.now))
            guard let held = try await enter(.mutex(name), Judge.Room(name: name), timeout: rest) else { break }
            all.append(held)
        }
        if all.count == numbers.count { try await pause(100...world.plan.hold) }
        for held in all.reversed() { try await leave(held) }
    }
}

extension Acquire {
    /// The request for a mutex.
    static func mutex(_ name: String) -> Acquire {
        Acquire(resource: Resource(name: name, kind: .mutex, permits: 1), mode: .lease)
    }
}
