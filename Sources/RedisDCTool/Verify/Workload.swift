// The resources that the processes of `redisdc verify` use, by name.
import Foundation
import QueueListen
import RedisDC
import Verification

/// The resources of a run, and the settings that all of its processes share.
struct Workload: Sendable {
    static let mutexes = ["mutex-1", "mutex-2"]
    /// A mutex that is handed over within a process.
    static let cohort = "cohort"
    static let readWriteLock = "read-write"
    static let pool = "pool"
    static let poolPermits = 3
    /// The permits with which each semaphore for signals is created.
    static let tokenPermits = 2
    static let mailboxes = ["mail-1", "mail-2", "mail-3"]
    /// A read-write lock as permits: a writer takes all of them.
    static let readWritePermits = 1000

    /// A reader's mailbox. Each process reads one, as a device of its own.
    static func mailbox(ofSlot slot: Int) -> String { mailboxes[slot % mailboxes.count] }

    static func device(ofSlot slot: Int) -> String { "device-\(slot)" }

    /// The semaphore for signals at a time: a new one every ten seconds, so that an announced loss leaves the balance
    /// of the others exact.
    static func tokens(at time: UInt64) -> String { "tokens-\(time / 10_000_000_000)" }

    static func coordinatorConfiguration(ttl: Int, partitions: Int) -> CoordinatorConfiguration {
        var configuration = CoordinatorConfiguration()
        configuration.ttl = .seconds(ttl)
        configuration.partitions = partitions
        configuration.nodeName = "redisdc verify"
        return configuration
    }

    static func postOfficeConfiguration(partitions: Int) -> PostOfficeConfiguration {
        var configuration = PostOfficeConfiguration()
        configuration.partitions = partitions
        // A send that a killed process has left unfinished is finished before the run ends.
        configuration.takeOverAfter = .seconds(2)
        configuration.recheckInterval = .seconds(2)
        return configuration
    }
}

/// A deliberate fault of a worker, with which tests show that the judge finds it.
enum Defect: String, CaseIterable {
    /// Uses a lock without asking Redis.
    case unsafeLock = "unsafe-lock"
    /// Continues to use a lock after it was notified of its loss.
    case ignoresLoss = "ignores-loss"
    /// Adds a permit that it does not record.
    case extraSignal = "extra-signal"
    /// Loses a message that it has received.
    case dropsMessage = "drops-message"
    /// Says that it has passed a barrier at which it has not arrived.
    case skipsBarrier = "skips-barrier"
    /// Crashes as soon as it is connected.
    case crashes
}

/// The random choices of one task.
struct Choices: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64, task: Int) { state = seed &+ UInt64(task) &* 0x9E37_79B9_7F4A_7C15 }

    /// SplitMix64.
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }

    mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration {
        .milliseconds(Int.random(in: range, using: &self))
    }

    /// Returns true once in `count` calls, on average.
    mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }
}
