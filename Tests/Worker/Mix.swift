import Foundation
import RedisDC
import TestRandom

/// A random mix of the operations of a semaphore, by concurrent tasks.
struct Mix {
    let semaphore: ClassicSemaphore
    let seed: UInt64

    private static let tasks = 8

    /// Runs the operations, and prints the seed first.
    ///
    /// - Returns: the confirmed counts, as the text `signalled taken cancelled timedOut`.
    func run(operations: Int) async throws -> String {
        printSeed(seed, of: "Mix")
        return try await withThrowingTaskGroup(of: Tally.self) { group in
            for number in 0..<Self.tasks {
                group.addTask {
                    var generator = SplitMix(seed: seed &* 31 &+ UInt64(number))
                    var tally = Tally()
                    for _ in 0..<(operations / Self.tasks) { try await step(&tally, &generator) }
                    return tally
                }
            }
            let sum = try await group.reduce(into: Tally()) { $0.add($1) }
            return "\(sum.signalled) \(sum.taken) \(sum.cancelled) \(sum.timedOut)"
        }
    }

    private struct Tally {
        var signalled = 0
        var taken = 0
        var cancelled = 0
        var timedOut = 0

        mutating func add(_ other: Tally) {
            signalled += other.signalled
            taken += other.taken
            cancelled += other.cancelled
            timedOut += other.timedOut
        }
    }

    private func step(_ tally: inout Tally, _ generator: inout SplitMix) async throws {
        switch Int.random(in: 0..<10, using: &generator) {
        case 0..<3:
            let count = Int.random(in: 1...2, using: &generator)
            try await semaphore.signal(count)
            tally.signalled += count
        case 3..<5:
            if try await semaphore.tryWait() { tally.taken += 1 }
        case 5..<8:
            do {
                try await semaphore.wait(timeout: .microseconds(Int.random(in: 1000...4000, using: &generator)))
                tally.taken += 1
            } catch {
                guard error.code == .timedOut else { throw error }
                tally.timedOut += 1
            }
        default:
            let semaphore = semaphore
            let wait = Task { try await semaphore.wait() }
            try await Task.sleep(for: .microseconds(Int.random(in: 0...800, using: &generator)))
            wait.cancel()
            do {
                try await wait.value
                tally.taken += 1
            } catch let error as RedisDCError where error.code == .cancelled {
                tally.cancelled += 1
            }
        }
    }
}
