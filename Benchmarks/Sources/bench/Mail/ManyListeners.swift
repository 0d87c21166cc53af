import Foundation
import Hiredis
import QueueListen

/// Many tasks of one process that each listen to a mailbox of their own.
///
/// Prints `ready`, begins to listen when it is told to, prints `waiting` when Redis knows of all of them, and at the end
/// when the last of those who are woken was awake, by the clock that all processes share.
enum ManyListeners {
    /// So many are woken, at once.
    static let woken = 1000

    static func run(url: String, count: Int, prefix: String, placement: Placement) async throws -> Int64 {
        try await withBenchOffice(url: url, namespace: prefix) { redis, office in
            // The scripts are loaded, and the subscription stands.
            _ = try await office.mailbox("first").listen(timeout: .milliseconds(1))
            say("ready")
            _ = Orders.next()
            Orders.endWithParent()
            return try await placement.run(redis) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<count {
                        let mailbox = try office.mailbox("m\(number)")
                        group.addTask { _ = try await mailbox.listen() }
                    }
                    try await untilListening(redis, count)
                    say("waiting")
                    for _ in 0..<min(woken, count) { try await group.next() }
                    let end = monotonicNow()
                    group.cancelAll()
                    return end
                }
            }
        }
    }

    /// Each has a mailbox in which its process is noted.
    private static func untilListening(_ redis: RedisClient, _ count: Int) async throws {
        while try await redis.send("DBSIZE").integer ?? 0 < count {
            try await Task.sleep(for: .milliseconds(20))
        }
        // Whose mailbox is made anew hears so, and looks once more.
        var last = ""
        while true {
            let info = try await redis.send("INFO", "commandstats").string ?? ""
            let scripts = info.split(separator: "\r\n").first { $0.hasPrefix("cmdstat_evalsha:") } ?? ""
            if scripts == last { return }
            last = String(scripts)
            try await Task.sleep(for: .milliseconds(300))
        }
    }

    /// Sends to so many mailboxes at once.
    ///
    /// - Returns: when it began, and when the last answer was there.
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

    struct Waking: Codable, Sendable {
        var start_ns: Int64
        var ms: Double
    }

    private static func say(_ word: String) {
        FileHandle.standardOutput.write(Data("\(word)\n".utf8))
    }
}
