// A random mix of the operations of all primitives, by concurrent tasks of several nodes.
public import RedisDC
import TestRandom

/// A random mix of the operations of all primitives.
public struct KindMix: Sendable {
    /// The coordinators of the nodes that perform the operations.
    public let nodes: [Coordinator]
    /// The seed of the random choices.
    public let seed: UInt64
    /// The checks of the invariants.
    public let watch: KindWatch
    private let cancels: Bool
    private let tasks: Int
    private let steps: Int

    /// The capacity of the bounded buffer.
    public static let capacity = 3

    /// Creates a mix.
    ///
    /// - Parameters:
    ///   - nodes: the coordinators of the nodes, among which the tasks are distributed.
    ///   - seed: the seed of the random choices.
    ///   - watch: the checks of the invariants.
    ///   - cancels: whether half of the operations are cancelled at a random time.
    ///   - tasks: the number of concurrent tasks.
    ///   - steps: the number of operations of each task.
    public init(
        nodes: [Coordinator], seed: UInt64, watch: KindWatch, cancels: Bool = false, tasks: Int = 8, steps: Int = 60
    ) {
        (self.nodes, self.seed, self.watch) = (nodes, seed, watch)
        (self.cancels, self.tasks, self.steps) = (cancels, tasks, steps)
    }

    /// Runs all operations, and prints the seed first.
    public func run() async throws {
        printSeed(seed, of: "KindMix")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<tasks {
                let node = nodes[task % nodes.count]
                group.addTask {
                    var random = SplitMix(seed: seed &* 1000 &+ UInt64(task))
                    for step in 0..<steps { try await self.step("\(seed)/\(task)/\(step)", node, &random) }
                    tally(.operation, steps)
                }
            }
            try await group.waitForAll()
        }
    }

    /// The node, as an index in `nodes`, that performs the operation with this id.
    public func node(of id: String) -> Int {
        let parts = id.split(separator: "/")
        return parts.count == 3 ? (Int(parts[1]) ?? 0) % nodes.count : 0
    }

    private func step(_ id: String, _ node: Coordinator, _ random: inout SplitMix) async throws {
        let kind = Kind.allCases.randomElement(using: &random)!
        let timeout = Duration.microseconds(500 << Int.random(in: 0...6, using: &random))
        let pause = Duration.microseconds(Int.random(in: 0...1500, using: &random))
        let isFirst = Bool.random(using: &random)
        let locality: Locality =
            Bool.random(using: &random) ? .strict : .cohort(limit: 3, linger: .milliseconds(5))
        let attempt = Attempt(
            node: node, watch: watch, id: id, kind: kind, isFirst: isFirst, timeout: timeout, pause: pause,
            locality: locality)
        let cancelAfter: Duration? =
            cancels && Bool.random(using: &random) ? .microseconds(Int.random(in: 0...4000, using: &random)) : nil
        do {
            if let cancelAfter {
                let running = Task { try await attempt.make() }
                try await Task.sleep(for: cancelAfter)
                running.cancel()
                try await running.value
            } else {
                try await attempt.make()
            }
            await watch.succeeded(kind)
        } catch  where Self.isExpected(error) {
            if (error as? RedisDCError)?.code == .lost { await watch.wasNotified(id) }
        }
    }

    /// Returns whether broken connections and cancelled tasks explain an error.
    private static func isExpected(_ error: any Error) -> Bool {
        guard let error = error as? RedisDCError else { return error is CancellationError }
        return error.mayHaveRun
            || [.timedOut, .full, .empty, .cancelled, .lost, .connectionLost, .notConnected].contains(error.code)
    }
}

/// One operation of one primitive.
private struct Attempt: Sendable {
    let node: Coordinator
    let watch: KindWatch
    let id: String
    let kind: Kind
    /// Whether the operation takes the first of the two roles that most primitives have.
    let isFirst: Bool
    let timeout: Duration
    let pause: Duration
    /// Of the mutexes.
    let locality: Locality

    func make() async throws {
        switch kind {
        case .semaphore:
            let tokens = try node.semaphore("tokens", permits: 2)
            if isFirst { try await tokens.signal() } else { try await tokens.wait(timeout: timeout) }
        case .pool:
            try await node.semaphore("pool", permits: 3).withPermits(isFirst ? 1 : 2, timeout: timeout) { lease in
                try await inside("pool", isFirst ? 1 : 2, of: 3, lease)
            }
        case .mutex:
            try await node.mutex("m", locality: locality).withLock(timeout: timeout) {
                try await inside("m", 1, of: 1, $0)
            }
        case .readWriteLock:
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
        case .lightSwitch:
            let room = try node.mutex("room", locality: locality)
            if id.utf8.reduce(0, { $0 &+ Int($1) }).isMultiple(of: 3) {
                try await room.withLock(timeout: timeout) { try await inside("room", 1000, of: 1000, $0) }
            } else {
                let group = isFirst ? "a" : "b"
                try await room.lightSwitch(group).withLock(timeout: timeout) { lease in
                    try await inside("room", 1, of: 1000, lease, of: group)
                }
            }
        case .condition:
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
        case .barrier:
            let arrival = try await node.barrier("b", parties: 2).arriveAndWait(timeout: timeout)
            await watch.passed("barrier", 2, arrival)
        case .doubleBarrier:
            // The double barrier has no timeout, so a party that stays alone is cancelled.
            let together = try node.doubleBarrier("d", parties: 2)
            let running = Task { try await together.run {} }
            try? await Task.sleep(for: timeout)
            running.cancel()
            try await running.value
        case .phaser:
            try await node.phaser("p").withParty { party in _ = try await party.arriveAndWait(timeout: timeout) }
        case .latch:
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
        case .turnstile:
            let gate = try node.turnstile("g")
            if isFirst { try await gate.admit() } else { try await gate.pass(timeout: timeout) }
        case .exchanger:
            let met = try await node.exchanger("e", of: String.self).exchange(id, timeout: timeout)
            await watch.met(id, met.values)
            await watch.passed("exchanger", 2, met.arrival)
        case .boundedBuffer:
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
        case .election:
            let term = try await node.election("leader").campaign(timeout: timeout)
            await watch.enters("leader", 1, of: 1, "", term, in: id)
            await watch.leaves(term)
            try await term.release()
        case .severalLocks:
            let names = isFirst ? ["m", "n"] : ["n", "m"]
            try await node.withLocks(names.map { try node.mutex($0, locality: locality) }, timeout: timeout) { leases in
                for (name, lease) in zip(names, leases) {
                    await watch.enters(name, 1, of: 1, "", lease, in: id)
                }
                try await pausing()
                for lease in leases { await watch.leaves(lease) }
            }
        }
    }

    private func pausing() async throws { try await Task.sleep(for: pause) }

    private func inside(
        _ room: String, _ size: Int, of capacity: Int, _ lease: Lease, of group: String = ""
    ) async throws {
        await watch.enters(room, size, of: capacity, group, lease, in: id)
        try? await pausing()
        await watch.leaves(lease)
        try Task.checkCancellation()
    }
}
