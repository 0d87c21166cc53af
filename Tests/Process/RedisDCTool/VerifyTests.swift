// `redisdc verify` as a process, with its own processes and real servers.
import Foundation
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCToolTestSupport

@Suite("redisdc verify", .serialized)
struct VerifyTests {
    private struct Report: Decodable {
        struct Row: Decodable {
            var promise: String
            var checks: Int
            var announced: Int
            var violations: Int
            var result: String
        }
        struct Statistics: Decodable {
            var failovers: Int
            var claimsLost: Int
        }
        var result: String
        var promises: [Row]
        var statistics: Statistics
        var violations: [String]

        init(_ end: Child.End) throws {
            do { self = try JSONDecoder().decode(Self.self, from: Data(end.output.utf8)) } catch {
                Issue.record("no report, but status \(end.status): \(end.output) \(end.error)")
                throw error
            }
        }

        func row(_ promise: String) throws -> Row { try #require(promises.first { $0.promise == promise }) }
    }

    private func keys(_ server: LocalRedis) async throws -> Int {
        try await withRedisClient(url: server.url) { try await $0.send("DBSIZE").integer ?? -1 }
    }

    @Test("a private server that is killed and restarted keeps every promise, and each is checked")
    func single() async throws {
        let words = ["verify", "--kill", "single", "--failovers", "3", "--processes", "3", "--json"]
        let end = try await Child("redisdc", words).end()
        let report = try Report(end)
        #expect(end.status == 0, "\(report.violations) \(end.error)")
        #expect(report.result == "held")
        #expect(report.statistics.failovers == 3)
        #expect(report.promises.count == 10)
        for row in report.promises { #expect(row.checks > 0, "\(row.promise)") }
    }

    @Test("a user without administrative rights can run it, and it leaves no key and removes no other one")
    func withoutRights() async throws {
        try await withEngineTool(.init(aclUsers: ["few on >pw ~* &* +@all -@admin -@dangerous"])) { tool in
            let other = "rdc:{other:0}:book"
            try await withRedisClient(url: tool.server.url) { _ = try await $0.send("SET", .string(other), "1") }
            let url = tool.server.url.replacing("redis://", with: "redis://few:pw@")
            let end = try await tool.run("verify", "--for", "3s", "--processes", "3", "--json", url: url)
            let report = try Report(end)
            #expect(report.violations == [], "\(end.error)")
            // On a busy machine a short run may not come to each check.
            #expect(end.status == (report.result == "held" ? 0 : 1), "\(end.error)")
            #expect(end.error.contains("INFO"), "it must say what it could not count")
            let left = try await withRedisClient(url: tool.server.url) { try await $0.send("KEYS", "*").array }
            #expect(left?.compactMap(\.string) == [other])
        }
    }

    @Test("Ctrl-C ends the processes and removes the keys")
    func interrupted() async throws {
        try await withEngineTool { tool in
            let run = try tool.start("verify", "--for", "1h", "--processes", "2", "--json")
            // The keys of the engine and of the mailboxes.
            try await until("the run has begun") { try await keys(tool.server) >= 6 }
            run.interrupt()
            let end = try await run.end()
            #expect(end.status == 130)
            #expect(try await keys(tool.server) == 0)
            try await withRedisClient(url: tool.server.url) { redis in
                try await until("no process of the run is connected") {
                    try await redis.send("CLIENT", "LIST").string?.split(whereSeparator: \.isNewline).count == 1
                }
            }
        }
    }

    // MARK: The locks of other programs

    /// A program that takes the place of the processes, and takes no lock.
    private static let careless = """
        #!/bin/sh
        while [ $# -gt 0 ]; do
            case $1 in --process) process=$2 ;; --history) folder=$2 ;; esac
            shift 2
        done
        now() { awk '{ printf "%.0f", $1 * 1000000000 }' /proc/uptime; }
        say() { echo "{\\"t\\":$(now),\\"p\\":$process,\\"e\\":\\"$1\\"$2}" >> "$folder/process-$process"; }
        say started
        (
            number=0
            while :; do
                number=$((number + 1))
                time=$(now)
                of="\\"o\\":$number,\\"v\\":\\"lock\\",\\"c\\":$time,\\"f\\":$time,\\"n\\":1,\\"l\\":1"
                say enter ",\\"r\\":\\"mutex-1\\",$of"
                sleep 0.2
                say held ",\\"o\\":$number"
            done
        ) &
        read -r line || exit 1
        kill $!
        """

    @Test("the holders of a program that excludes nobody are found, and nothing else of it is judged")
    func rival() async throws {
        try await withEngineTool { tool in
            let program = tool.mark("careless")
            try Self.careless.write(toFile: program, atomically: true, encoding: .utf8)
            let end = try await tool.run(
                "verify", "--for", "4s", "--processes", "3", "--rival", "sh \(program)", "--json", "--history",
                tool.mark("history"))
            let report = try Report(end)
            #expect(end.status == 1 && report.result == "violated")
            #expect(report.promises.map(\.promise) == ["exclusion"])
            #expect(try report.row("exclusion").violations > 0)
            #expect(try await keys(tool.server) == 0)
        }
    }

    // MARK: Processes that break a promise

    @Test(
        "a process that breaks a promise is found, and the history has the same verdict again",
        arguments: [
            ("unsafe-lock", "locks", "exclusion"), ("extra-signal", "semaphores", "conservation"),
            ("drops-message", "mail", "order"), ("skips-barrier", "barriers", "barriers"),
        ])
    func defect(_ defect: String, _ family: String, _ promise: String) async throws {
        try await withEngineTool { tool in
            let path = tool.mark("history")
            let end = try await tool.run(
                "verify", "--for", "8s", "--processes", "3", "--only", family, "--defect", defect, "--json",
                "--history", path)
            let report = try Report(end)
            #expect(end.status == 1)
            #expect(try report.row(promise).result == "violated")
            #expect(!report.violations.isEmpty)
            #expect(try await keys(tool.server) == 0)

            let replay = try await tool.run("verify", "--replay", path, "--json")
            #expect(replay.status == 1)
            #expect(replay.output == end.output)
        }
    }

    @Test("a process that crashes ends the run with an error that names the signal")
    func crash() async throws {
        try await withEngineTool { tool in
            let end = try await tool.run("verify", "--for", "1h", "--processes", "2", "--defect", "crashes")
            #expect(end.status == 70)
            #expect(end.error.contains("has crashed with signal"), "\(end.error)")
            #expect(try await keys(tool.server) == 0)
        }
    }

    @Test("a process that ignores the loss of its lock is found, and one that does not is no violation")
    func ignoredLoss() async throws {
        try await withEngineTool { tool in
            for isIgnored in [true, false] {
                let words = [
                    "verify", "--for", "12s", "--processes", "3", "--only", "locks", "--json", "--history",
                    tool.mark("history-\(isIgnored)"),
                ]
                let lies = isIgnored ? ["--defect", "ignores-loss"] : []
                // A coordinator of this test may have outlived the keys of the first run, and have made some again.
                try await withRedisClient(url: tool.server.url) { _ = try await $0.send("FLUSHALL") }
                let run = try Child("redisdc", words + lies, environment: ["REDIS_URL": tool.server.url])
                let count = try await forceReleases(tool.server, while: run)
                let end = try await run.end()
                let report = try Report(end)
                #expect(count > 0)
                #expect(try report.row("exclusion").result == (isIgnored ? "violated" : "held"), "\(report.violations)")
                // The last check of a run takes each lock, and is notified when it is taken away.
                #expect(isIgnored || report.result != "violated", "\(report.violations) \(end.error)")
                #expect(isIgnored || report.statistics.claimsLost > 0)
            }
        }
    }

    /// Takes locks from their holders until the run has ended.
    ///
    /// - Returns: the number of locks that it has taken.
    private func forceReleases(_ server: LocalRedis, while run: Child) async throws -> Int {
        try await withRedisClient(url: server.url) { redis in
            var name: String?
            try await until("the run has a namespace") {
                let keys = try await redis.send("KEYS", "rdc:{verify-*:0}:book").array ?? []
                name = keys.first?.string?.split(separator: "{").last?.split(separator: ":").first.map(String.init)
                return name != nil
            }
            return try await withCoordinator(redis: redis, namespace: try #require(name)) { coordinator in
                var count = 0
                while run.isRunning {
                    for name in ["mutex-1", "mutex-2"] {
                        // At the end of the run the namespace is gone.
                        let holder = try? await coordinator.inspect(name, limit: 1)?.holders.first
                        guard let holder else { continue }
                        count += (try? await coordinator.forceRelease(name, holder: holder.id)) ?? 0
                    }
                    try await Task.sleep(for: .milliseconds(20))
                }
                return count
            }
        }
    }
}
