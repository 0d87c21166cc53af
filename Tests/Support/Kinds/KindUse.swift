// The uses of primitives in a KindMix. A new primitive adds its uses here.
public import RedisDC

/// A use of a primitive in a ``KindMix``: an operation of one of the two roles that most primitives have.
public struct KindUse: Sendable {
    /// The name in messages.
    public let name: String
    /// The kinds of resources that it uses.
    public let kinds: Set<ResourceKind>
    /// Performs the operation.
    let make: @Sendable (Attempt) async throws -> Void

    private init(_ name: String, _ kinds: Set<ResourceKind>, _ make: @escaping @Sendable (Attempt) async throws -> Void)
    {
        (self.name, self.kinds, self.make) = (name, kinds, make)
    }

    /// Performs the operation, whose guarantees nobody checks.
    ///
    /// - Parameter isFirst: the role.
    public func perform(by node: Coordinator, _ isFirst: Bool, _ timeout: Duration) async throws {
        try await make(
            Attempt(
                node: node, watch: KindWatch(), id: "\(isFirst)", isFirst: isFirst, timeout: timeout, pause: .zero,
                locality: .strict))
    }

    /// All uses, by which the mix chooses at random.
    public static let all: [KindUse] = [
        KindUse("semaphore", [.semaphore]) { try await $0.semaphore() },
        KindUse("pool", [.semaphore]) { try await $0.pool() },
        KindUse("mutex", [.mutex]) { try await $0.mutex() },
        KindUse("readWriteLock", [.readWriteLock]) { try await $0.readWriteLock() },
        KindUse("lightSwitch", [.mutex]) { try await $0.lightSwitch() },
        KindUse("condition", [.condition, .mutex]) { try await $0.condition() },
        KindUse("barrier", [.barrier]) { try await $0.barrier() },
        KindUse("doubleBarrier", [.barrier]) { try await $0.doubleBarrier() },
        KindUse("phaser", [.phaser]) { try await $0.phaser() },
        KindUse("latch", [.latch]) { try await $0.latch() },
        KindUse("turnstile", [.turnstile]) { try await $0.turnstile() },
        KindUse("exchanger", [.exchanger]) { try await $0.exchanger() },
        KindUse("boundedBuffer", [.boundedBuffer, .bufferItems]) { try await $0.boundedBuffer() },
        KindUse("election", [.mutex]) { try await $0.election() },
        KindUse("severalLocks", [.mutex]) { try await $0.severalLocks() },
    ]
}

/// One operation of one primitive.
struct Attempt: Sendable {
    let node: Coordinator
    let watch: KindWatch
    let id: String
    /// Whether the operation takes the first of the two roles that most primitives have.
    let isFirst: Bool
    let timeout: Duration
    let pause: Duration
    /// Of the mutexes.
    let locality: Locality
}

extension Attempt {
    func semaphore() async throws {
        let tokens = try node.semaphore("tokens", permits: 2)
        if isFirst { try await tokens.signal() } else { try await tokens.wait(timeout: timeout) }
    }

    func pool() async throws {
        try await node.semaphore("pool", permits: 3).withPermits(isFirst ? 1 : 2, timeout: timeout) { lease in
            try await inside("pool", isFirst ? 1 : 2, of: 3, lease)
        }
    }

    func mutex() async throws {
        try await node.mutex("m", locality: locality).withLock(timeout: timeout) {
            try await inside("m", 1, of: 1, $0)
        }
    }

    func readWriteLock() async throws {
        let lock = try node.readWriteLock("rw")
        if isFirst {
            try await lock.withReadLock(timeout: timeout) { try await inside("rw", 1, of: 1000, $0) }
        } else {
            try await lock.withWriteLock(timeout: timeout) { lease in
                try await inside("rw", 1000, of: 1000, lease)
                try await lock.downgrade(lease)
                try await inside("rw", 1, of: 1000, lease)
            }
        }
    }

    func lightSwitch() async throws {
        let room = try node.mutex("room", locality: locality)
        if id.utf8.reduce(0, { $0 &+ Int($1) }).isMultiple(of: 3) {
            try await room.withLock(timeout: timeout) { try await inside("room", 1000, of: 1000, $0) }
        } else {
            let group = isFirst ? "a" : "b"
            try await room.lightSwitch(group).withLock(timeout: timeout) { lease in
                try await inside("room", 1, of: 1000, lease, of: group)
            }
        }
    }

    func condition() async throws {
        let mutex = try node.mutex("cm", locality: locality)
        let condition = try mutex.condition("c")
        try await mutex.withLock(timeout: timeout) { lease in
            if isFirst {
                try await condition.notify()
            } else {
                try await condition.wait(lease, timeout: timeout)
                try await inside("cm", 1, of: 1, lease)
            }
        }
    }

    func barrier() async throws {
        let arrival = try await node.barrier("b", parties: 2).arriveAndWait(timeout: timeout)
        await watch.passed("barrier", 2, arrival)
    }

    func doubleBarrier() async throws {
        // The double barrier has no timeout, so a party that stays alone is cancelled.
        let together = try node.doubleBarrier("d", parties: 2)
        let running = Task { try await together.run {} }
        try? await Task.sleep(for: timeout)
        running.cancel()
        try await running.value
    }

    func phaser() async throws {
        try await node.phaser("p").withParty { party in _ = try await party.arriveAndWait(timeout: timeout) }
    }

    func latch() async throws {
        // Two of the latch's three IDs are counted down often, the third rarely.
        let latch = try node.latch("l", count: 3)
        if isFirst {
            let name = ["x", "y", "z"][id.utf8.count % 3]
            await watch.countsDown(name)
            _ = try await latch.countDown(id: name)
        } else {
            try await latch.wait(timeout: timeout)
            await watch.latchOpened(of: 3)
        }
    }

    func turnstile() async throws {
        let gate = try node.turnstile("g")
        if isFirst { try await gate.admit() } else { try await gate.pass(timeout: timeout) }
    }

    func exchanger() async throws {
        let met = try await node.exchanger("e", of: String.self).exchange(id, timeout: timeout)
        await watch.met(id, met.values)
        await watch.passed("exchanger", 2, met.arrival)
    }

    func boundedBuffer() async throws {
        let buffer = try node.boundedBuffer("k", of: String.self, capacity: KindMix.capacity)
        if isFirst {
            await watch.puts(id)
            try await buffer.put(id, timeout: timeout)
            await watch.hasPut(id)
        } else {
            try await buffer.withItem(timeout: timeout) { item in
                await watch.handles(item)
                try await Task.sleep(for: pause)
            }
        }
    }

    func election() async throws {
        let term = try await node.election("leader").campaign(timeout: timeout)
        await watch.enters("leader", 1, of: 1, "", term, in: id)
        await watch.leaves(term)
        try await term.release()
    }

    func severalLocks() async throws {
        let names = isFirst ? ["m", "n"] : ["n", "m"]
        try await node.withLocks(names.map { try node.mutex($0, locality: locality) }, timeout: timeout) { leases in
            for (name, lease) in zip(names, leases) {
                await watch.enters(name, 1, of: 1, "", lease, in: id)
            }
            try await pausing()
            for lease in leases { await watch.leaves(lease) }
        }
    }

    fileprivate func pausing() async throws { try await Task.sleep(for: pause) }

    fileprivate func inside(
        _ room: String, _ size: Int, of capacity: Int, _ lease: Lease, of group: String = ""
    ) async throws {
        await watch.enters(room, size, of: capacity, group, lease, in: id)
        try? await pausing()
        await watch.leaves(lease)
        try Task.checkCancellation()
    }
}
