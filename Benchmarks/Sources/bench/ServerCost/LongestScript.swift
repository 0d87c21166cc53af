// The longest script at the largest legal sizes, in instructions.
import Foundation
import Hiredis
import QueueListen
import RedisDC
import RedisDCTesting

/// Uses of the library at the sizes that cost a script most. Redis executes one script at a time, so what the longest one
/// costs is how long everybody else may wait.
enum LongestScript: String, CaseIterable {
    case barrier = "a barrier of 1,024 opens"
    case semaphore = "1,500 waiters are granted by one signal, 1,500 others by a destroyed semaphore"
    case readWriteLock = "1,500 readers wait for a writer"
    case condition = "400 waiters of a condition are notified"
    case latch = "a latch with 1,500 noted ids is destroyed"
    case session = "a session with 1,500 claims ends"
    case message = "a message of 1 MiB, and 768 messages of 1,300 bytes, to one mailbox"
    case broadcast = "3 messages of 1,000 bytes to 256 mailboxes"
    case dropOldest = "a message of 1 MiB replaces 8,000 small ones"
    case lightSwitch = "400 members enter a mutex with their group"
    case buffer = "a buffer with 24 items of 1 MiB is listed and destroyed"
    case exchanger = "64 parties exchange values of 64 KiB"
    case holders = "1,000 holders of one of 600 resources are inspected, and all resources listed"
    case classic = "a classic semaphore of 1,000,000 permits is created and destroyed"
    case corruptSession = "a corrupt session with 20,000 slots is swept"
    case board = "1,000 names of 512 bytes are read from a leaderboard"
    case matchmaker = "300 tickets for matches of 16, and windows that widen"
    case presence = "600 objects of a client that leaves, and pages of objects of 16 KiB"

    /// Less than 5 ms on the machine of docs/benchmarks.md. There, the opening of the barrier took 3.8 ms, and the longest
    /// sends, which walk through less memory for as many instructions, 2.3 to 5.0 ms.
    private var limit: Int {
        switch self {
        case .message, .broadcast, .dropOldest: 27_000_000
        default: 17_000_000
        }
    }

    /// Returns the instructions of the longest script.
    func count() async throws -> Int {
        try await CountedServer.longestScript { server in
            switch self {
            case .message, .broadcast, .dropOldest: try await mail(server)
            case .board, .matchmaker, .presence: try await services(server)
            default: try await engine(server)
            }
        }
    }

    /// Counts all uses.
    ///
    /// - Throws: when a script exceeds its limit.
    static func check() async throws {
        let uncovered = try uncoveredEntries()
        guard uncovered.isEmpty else {
            throw BenchError(
                "the rows of longest scripts and the entries of the modules differ (LongestScript+Entries.swift): "
                    + uncovered.joined(separator: ", "))
        }
        // Two at the same time, because what other processes do changes no count.
        async let first = excesses(of: allCases.enumerated().filter { $0.offset % 2 == 0 }.map(\.element))
        async let second = excesses(of: allCases.enumerated().filter { $0.offset % 2 == 1 }.map(\.element))
        let excesses = try await first + second
        guard excesses.isEmpty else {
            throw BenchError("a script occupies the server too long:\n" + excesses.joined(separator: "\n"))
        }
    }

    private static func excesses(of uses: [LongestScript]) async throws -> [String] {
        var excesses: [String] = []
        for use in uses {
            let instructions = try await use.count()
            print("longest script, \(use.rawValue): \(instructions) instructions")
            if instructions > use.limit { excesses.append("\(use.rawValue): \(instructions), at most \(use.limit)") }
        }
        return excesses
    }

    // MARK: The engine

    private func engine(_ server: LocalRedis) async throws {
        // No session expires, however slow the counted server is.
        var configuration = CoordinatorConfiguration()
        configuration.ttl = .seconds(self == .corruptSession ? 15 : 3600)
        try await withBenchCoordinator(
            url: server.url, namespace: "cost", configuration: configuration, commandTimeout: .seconds(300)
        ) { redis, coordinator in
            switch self {
            case .barrier:
                let barrier = try coordinator.barrier(Self.long("b"), parties: Barrier.maxParties)
                try await Self.together(Barrier.maxParties) { _ in try await barrier.arriveAndWait() }
            case .semaphore:
                let signalled = try coordinator.semaphore(Self.long("signalled"), permits: 0)
                try await Self.together(1500) { _ in
                    try await signalled.wait()
                } meanwhile: {
                    try await Self.untilWaiting(1500, Self.long("signalled"), coordinator)
                    try await signalled.signal(1500)
                }
                let destroyed = try coordinator.semaphore(Self.long("destroyed"), permits: 0)
                try await Self.together(1500) { _ in
                    do { try await destroyed.wait() } catch let error as RedisDCError where error.code == .destroyed {}
                } meanwhile: {
                    try await Self.untilWaiting(1500, Self.long("destroyed"), coordinator)
                    try await destroyed.destroy()
                }
            case .readWriteLock:
                let lock = try coordinator.readWriteLock(Self.long("rw"))
                let writer = try await lock.writeLock()
                try await Self.together(1500) { _ in
                    try await lock.withReadLock { _ in }
                } meanwhile: {
                    try await Self.untilWaiting(1500, Self.long("rw"), coordinator)
                    try await writer.release()
                }
            case .condition:
                let mutex = try coordinator.mutex(Self.long("m", 510))
                let condition = try mutex.condition("c")
                try await Self.together(400) { _ in
                    try await mutex.withLock { try await condition.wait($0) }
                } meanwhile: {
                    try await Self.untilWaiting(400, Self.long("m", 510) + "#c", coordinator)
                    try await condition.notifyAll()
                }
            case .latch:
                let latch = try coordinator.latch(Self.long("l"), count: Latch.maxCount)
                try await Self.together(100) { task in
                    for number in 0..<15 { _ = try await latch.countDown(id: Self.long("id \(task)-\(number)")) }
                }
                try await latch.destroy()
            case .lightSwitch, .buffer, .exchanger, .holders, .classic, .corruptSession:
                try await operators(redis, coordinator)
            default:
                // The end of the coordinator ends them.
                let semaphore = try coordinator.semaphore(Self.long("s"), permits: 1500)
                try await Self.together(100) { _ in
                    for _ in 0..<15 { _ = try await semaphore.acquireLease() }
                }
            }
        }
    }

    /// Runs `count` tasks, and `other` at the same time.
    static func together(
        _ count: Int, _ body: @Sendable @escaping (Int) async throws -> Void,
        meanwhile other: () async throws -> Void = {}
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count { group.addTask { try await body(number) } }
            try await other()
            try await group.waitForAll()
        }
    }

    static func untilWaiting(_ count: Int, _ name: String, _ coordinator: Coordinator) async throws {
        while try await coordinator.inspect(name, limit: 1)?.waiterCount != count {
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    // MARK: Mailboxes

    private func mail(_ server: LocalRedis) async throws {
        try await withBenchOffice(url: server.url, namespace: "cost") { _, office in
            switch self {
            case .message:
                try await office.send([Self.message(1_048_000)], to: ["large"])
                try await office.send([Message](repeating: Self.message(1300), count: 768), to: ["many"])
                for name in ["large", "many"] {
                    let page = try await office.mailbox(name).listen(timeout: .zero)
                    _ = try await office.mailbox(name).listen(after: page.cursor, timeout: .zero)
                }
            case .broadcast:
                let names = (0..<256).map { "m\($0)" }
                for _ in 0..<2 {
                    try await office.send([Message](repeating: Self.message(1000), count: 3), to: names)
                }
            default:
                var limits = MailboxLimits()
                (limits.maxMessages, limits.maxBytes, limits.whenFull) = (8000, 2 << 20, .dropOldest)
                let mailbox = try office.mailbox("m")
                try await mailbox.setLimits(limits)
                for _ in 0..<16 {
                    try await office.send([Message](repeating: Self.message(100), count: 500), to: ["m"])
                }
                try await office.send([Self.message(1_048_000)], to: ["m"])
            }
        }
    }

    private static func message(_ size: Int) -> Message { Message(bytes: [UInt8](repeating: 120, count: size)) }
}
