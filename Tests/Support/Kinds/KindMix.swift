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
        let use = KindUse.all.randomElement(using: &random)!
        let timeout = Duration.microseconds(500 << Int.random(in: 0...6, using: &random))
        let pause = Duration.microseconds(Int.random(in: 0...1500, using: &random))
        let isFirst = Bool.random(using: &random)
        let locality: Locality =
            Bool.random(using: &random) ? .strict : .cohort(limit: 3, linger: .milliseconds(5))
        let attempt = Attempt(
            node: node, watch: watch, id: id, isFirst: isFirst, timeout: timeout, pause: pause,
            locality: locality)
        let cancelAfter: Duration? =
            cancels && Bool.random(using: &random) ? .microseconds(Int.random(in: 0...4000, using: &random)) : nil
        do {
            if let cancelAfter {
                let running = Task { try await use.make(attempt) }
                try await Task.sleep(for: cancelAfter)
                running.cancel()
                try await running.value
            } else {
                try await use.make(attempt)
            }
            await watch.succeeded(use)
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
