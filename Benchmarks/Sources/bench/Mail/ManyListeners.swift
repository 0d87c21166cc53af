import Foundation
import Hiredis
import QueueListen

/// Measures many tasks of one process that each listen to a mailbox of their own.
///
/// Prints `ready`, starts to listen after the next line from its parent, and prints `waiting` when Redis has noted all of
/// them. At the end it prints when the last of the woken listeners was awake, by the clock that all processes share.
enum ManyListeners {
    /// The number of listeners that are woken at once.
    static let woken = 1000

    static func run(url: String, count: Int, prefix: String, placement: Placement) async throws -> Int64 {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            // Loads the scripts and starts the subscription.
            _ = try await office.mailbox("first").listen(timeout: .milliseconds(1))
            printLine("ready")
            _ = ParentInput.next()
            ParentInput.exitWithParent()
            return try await placement.run(redis) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<count {
                        let mailbox = try office.mailbox("m\(number)")
                        group.addTask { _ = try await mailbox.listen() }
                    }
                    try await untilListening(redis, count)
                    printLine("waiting")
                    for _ in 0..<min(woken, count) { try await group.next() }
                    let end = monotonicNow()
                    group.cancelAll()
                    return end
                }
            }
        }
    }

    /// Waits until Redis has a mailbox for each listener, which notes the listening process.
    private static func untilListening(_ redis: RedisClient, _ count: Int) async throws {
        while try await redis.send("DBSIZE").integer ?? 0 < count {
            try await Task.sleep(for: .milliseconds(20))
        }
        // A new mailbox is announced, and its listener then reads it once more. Waits until no more scripts run.
        var last = ""
        while true {
            let info = try await redis.send("INFO", "commandstats").string ?? ""
            let scripts = info.split(separator: "\r\n").first { $0.hasPrefix("cmdstat_evalsha:") } ?? ""
            if scripts == last { return }
            last = String(scripts)
            try await Task.sleep(for: .milliseconds(300))
        }
    }

    /// Sends to `count` mailboxes at once.
    ///
    /// - Returns: The time of the start, and the time until the last answer had arrived.
    static func wake(url: String, count: Int, prefix: String, placement: Placement) async throws -> Waking {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            try await office.send("", to: "another")
            return try await placement.run(redis) {
                let start = monotonicNow()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<count { group.addTask { try await office.send(.bench, to: "m\(number)") } }
                    try await group.waitForAll()
                }
                return Waking(start_ns: start, ms: Double(monotonicNow() - start) / 1e6)
            }
        }
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    struct Waking: Codable, Sendable {
        var start_ns: Int64
        var ms: Double
    }

    private static func printLine(_ word: String) {
        FileHandle.standardOutput.write(Data("\(word)\n".utf8))
    }
}
