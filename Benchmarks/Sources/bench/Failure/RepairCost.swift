import Foundation
import Hiredis
import QueueListen
import RedisDC

/// Measures what it costs a process to remember what it has confirmed, for the case of a failover.
///
/// 64 tasks of one process work with two objects in turn, of which one remembers and the other one does not.
/// Neighbouring rounds are compared, so that other activity on the machine affects both alike.
enum RepairCost {
    enum Operation: String, CaseIterable {
        case send, signal
        var title: String { self == .send ? "sends of 40 bytes to a mailbox" : "signals of a semaphore" }
    }

    /// How much more one of the two costs, in percent: the median of all pairs of rounds, and the limits between which it
    /// lies with a probability of 95 %.
    struct Excess: Codable, Sendable {
        var median: Double
        var least: Double
        var greatest: Double

        init(_ ratios: [Double]) {
            let sorted = ratios.sorted().map { ($0 - 1) * 100 }
            let middle = Double(sorted.count - 1) / 2
            // The ranks of a binomial distribution by its normal approximation.
            let distance = 0.98 * Double(sorted.count).squareRoot()
            median = (sorted[Int(middle.rounded(.down))] + sorted[Int(middle.rounded(.up))]) / 2
            least = sorted[max(0, Int((middle - distance).rounded(.down)))]
            greatest = sorted[min(sorted.count - 1, Int((middle + distance).rounded(.up)))]
        }
    }

    struct Result: Codable, Sendable {
        var processorTime: Excess
        var duration: Excess
    }

    private static let tasks = 64
    private static let each = 100

    /// - Parameters:
    ///   - pairs: The number of pairs of rounds that are compared. Before them, as many rounds as fill the memory.
    ///   - isControl: Both remember nothing.
    static func run(
        url: String, _ operation: Operation, pairs: Int, isControl: Bool, prefix: String, placement: Placement
    ) async throws -> Result {
        try await withRedisClient(url: url) { redis in
            try await withOperation(operation, redis, prefix + "-1", remembers: !isControl) { first in
                try await withOperation(operation, redis, prefix + "-2", remembers: false) { second in
                    try await placement.run(redis) { try await compare(first, second, pairs: pairs) }
                }
            }
        }
    }

    private static func withOperation(
        _ operation: Operation, _ redis: RedisClient, _ namespace: String, remembers: Bool,
        _ body: (@escaping @Sendable () async throws -> Void) async throws -> Result
    ) async throws -> Result {
        switch operation {
        case .send:
            var configuration = PostOfficeConfiguration()
            configuration.limits = .bench
            if !remembers { configuration.repairBytes = 0 }
            return try await withPostOffice(redis: redis, namespace: namespace, configuration: configuration) {
                office in
                let message = Message(bytes: [UInt8](repeating: UInt8(ascii: "x"), count: 40))
                return try await body { try await office.send([message], to: ["m"]) }
            }
        case .signal:
            var configuration = CoordinatorConfiguration()
            if !remembers { configuration.repairBytes = 0 }
            return try await withCoordinator(redis: redis, namespace: namespace, configuration: configuration) {
                coordinator in
                let semaphore = try coordinator.semaphore("s", permits: 0)
                return try await body { try await semaphore.signal() }
            }
        }
    }

    private static func compare(
        _ first: @escaping @Sendable () async throws -> Void, _ second: @escaping @Sendable () async throws -> Void,
        pairs: Int
    ) async throws -> Result {
        for _ in 0..<pairs / 4 + 1 {
            _ = try await round(first)
            _ = try await round(second)
        }
        var processorTimes: [Double] = []
        var durations: [Double] = []
        for pair in 0..<pairs {
            // Each of the two is first in half of the pairs.
            let isReversed = !pair.isMultiple(of: 2)
            let one = try await round(isReversed ? second : first)
            let other = try await round(isReversed ? first : second)
            let (with, without) = isReversed ? (other, one) : (one, other)
            processorTimes.append(Double(with.processor) / Double(without.processor))
            durations.append(Double(with.duration) / Double(without.duration))
        }
        return Result(processorTime: Excess(processorTimes), duration: Excess(durations))
    }

    /// - Returns: The processor time of the process and the duration, in nanoseconds.
    private static func round(
        _ operation: @escaping @Sendable () async throws -> Void
    ) async throws -> (processor: Int64, duration: Int64) {
        let (processor, start) = (processorTime(), monotonicNow())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<tasks {
                group.addTask { for _ in 0..<each { try await operation() } }
            }
            try await group.waitForAll()
        }
        return (processorTime() - processor, monotonicNow() - start)
    }

    private static func processorTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
