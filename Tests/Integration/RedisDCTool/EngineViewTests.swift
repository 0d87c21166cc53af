import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCToolTestSupport

@Suite("redisdc inspect, top and release", .serialized)
struct EngineViewTests {
    private func hold(_ name: String, _ tool: EngineTool) async throws -> Child {
        let child = try tool.start(
            "lock", name, "--", "sh", "-c",
            "echo $REDISDC_FENCE > \(tool.mark(name)); \(tool.shellUntil("go"))")
        _ = try await tool.text(of: name)
        return child
    }

    @Test("inspect of a missing name reports no holders, and creates no key")
    func nothing() async throws {
        try await withEngineTool { tool in
            let text = try await tool.run("inspect", "m")
            #expect(text.status == 0 && text.output.contains("\"m\" is free: it has no holders and no waiters"))
            let found = try await tool.inspect("m")
            #expect(found.kind == "none" && found.holders.isEmpty && found.waiters.isEmpty)
            #expect(try await tool.run("top", "--once").output == "default: 0 sessions, 0 names")
            try await withRedisClient(url: tool.server.unixURL) { redis in
                let keys = try await redis.send("KEYS", "*").array
                #expect(keys == [])
            }
        }
    }

    @Test("inspect shows each holder with its fencing token, and the waiters in queue order")
    func holdersAndWaiters() async throws {
        try await withEngineTool { tool in
            let holding = try await hold("m", tool)
            let fence = UInt64(try await tool.text(of: "m"))
            let waiting = [
                try tool.start("lock", "m", "--", "echo"), try { try tool.start("lock", "m", "--", "true") }(),
            ]
            try await tool.untilWaiting(2, for: "m")
            let found = try await tool.inspect("m")
            #expect(found.kind == "mutex" && found.permits == 1 && found.available == 0)
            let holder = try #require(found.holders.first)
            #expect(holder.fence == fence && holder.count == 1 && holder.seconds > 0)
            #expect(holder.node.hasSuffix(" \(holding.processID) redisdc sh"))
            #expect(try Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(holder.since) < .now + 60)
            let processIDs = found.waiters.map { $0.node.split(separator: " ")[1] }
            #expect(Set(processIDs) == Set(waiting.map { "\($0.processID)" }))
            #expect(found.waiters.map(\.since) == found.waiters.map(\.since).sorted())
            #expect(found.waiters.allSatisfy { $0.fence == nil })
            let text = try await tool.run("inspect", "m").output
            #expect(text.hasPrefix("m: mutex, 1 holding, 2 waiting\n"))
            #expect(text.contains("\(holder.fence!)") && text.contains("waiting, next first"))
            let short = try await tool.run("inspect", "m", "--limit", "1").output
            #expect(short.contains("and 1 more"))
            tool.leaveMark("go")
            for child in [holding] + waiting { _ = try await child.result() }
        }
    }

    @Test("inspect does not count permits that signals have added as a part of those of the creation")
    func addedPermits() async throws {
        try await withEngineTool { tool in
            try await tool.run("sem", "create", "s", "--permits", "2")
            #expect(try await tool.run("inspect", "s").output.hasPrefix("s: semaphore, 2 of 2 permits available, "))
            try await tool.run("sem", "signal", "s", "-n", "3")
            #expect(try await tool.run("inspect", "s").output.hasPrefix("s: semaphore, 5 permits available, "))
        }
    }

    private struct ResourceList: Decodable {
        struct Resource: Decodable, Equatable {
            var name: String
            var kind: String
            var permits: Int
            var available: Int
            var held: Int
            var waiting: Int
            var longestWait: Double?
        }
        var namespace: String
        var sessions: Int
        var resources: [Resource]
    }

    @Test("top lists the resources with the most waiters first, as text and as JSON")
    func top() async throws {
        try await withEngineTool { tool in
            try await tool.run("sem", "create", "a", "--permits", "5")
            try await tool.run("sem", "wait", "a", "-n", "2")
            let holding = try await hold("m", tool)
            let waiting = try tool.start("lock", "m", "--", "true")
            try await tool.untilWaiting(1, for: "m")
            let output = try await tool.run("top", "--once", "--json").output
            let list = try JSONDecoder().decode(ResourceList.self, from: Data(output.utf8))
            #expect(list.namespace == "default" && list.sessions == 2)
            #expect(list.resources.map(\.name) == ["m", "a"])
            #expect(list.resources[0].held == 1 && list.resources[0].waiting == 1)
            #expect(list.resources[0].longestWait ?? 0 > 0)
            let semaphore = ResourceList.Resource(
                name: "a", kind: "semaphore", permits: 5, available: 3, held: 2, waiting: 0)
            #expect(list.resources[1] == semaphore)
            let lines = try await tool.run("top", "--once").output.split(separator: "\n")
            #expect(lines[0] == "default: 2 sessions, 2 names")
            #expect(lines[2].hasPrefix("m ") && lines[3].hasPrefix("a "))
            for (order, first) in [("waiting", "m"), ("held", "a"), ("wait", "m"), ("name", "a")] {
                let sorted = try await tool.run("top", "--once", "--sort", order).output.split(separator: "\n")
                #expect(sorted[2].hasPrefix(first + " "), "\(order)")
            }
            #expect(try await tool.run("top", "--sort", "kind").status == 64)
            #if os(Linux)
                // On a terminal, what waits is bold.
                let screen = tool.mark("screen")
                let top = try Child(
                    "sh", ["-c", "exec script -q -f -c '\(tool.path) top --interval 0.05' \(screen)"],
                    environment: ["REDIS_URL": tool.server.url, "NO_COLOR": ""])
                try await until("the lock is bold") {
                    let text = (try? String(contentsOfFile: screen, encoding: .utf8)) ?? ""
                    return text.contains("\u{1B}[1mm ") && !text.contains("\u{1B}[1ma ")
                }
                try await top.kill9()
            #endif
            tool.leaveMark("go")
            _ = try await holding.result()
            _ = try await waiting.result()
        }
    }

    @Test("top refreshes until interrupted, survives a lost connection, and exits with 0")
    func live() async throws {
        try await withEngineTool { tool in
            let top = try Child(
                "sh", ["-c", "exec \(tool.path) top --json --interval 0.05 > \(tool.mark("top"))"],
                environment: ["REDIS_URL": tool.server.url])
            func lines() -> Int {
                ((try? String(contentsOfFile: tool.mark("top"), encoding: .utf8)) ?? "").split(separator: "\n").count
            }
            try await until("it refreshes") { lines() > 2 }
            try await withRedisClient(url: tool.server.unixURL) { redis in
                _ = try await redis.send("CLIENT", "KILL", "TYPE", "normal")
            }
            let before = lines()
            try await until("it refreshes after the break") { lines() > before + 2 }
            top.interrupt()
            let end = try await top.end()
            #expect(end.status == 0, "\(end.error)")
        }
    }

    @Test("release requires --force, and releases one holder or all")
    func release() async throws {
        try await withEngineTool { tool in
            let refused = try await tool.run("release", "s")
            #expect(refused.status == 64 && refused.error.contains("--force"))
            #expect(refused.error.split(separator: "\n").count == 1)
            #expect(try await tool.run("release", "--force", "s").output == "no holders")
            try await tool.run("sem", "create", "s", "--permits", "3")
            let command = "echo > \(tool.mark("on")); \(tool.shellUntil("go"))"
            let holding = try (0..<3).map { _ in try tool.start("sem", "wait", "s", "--hold", "--", "sh", "-c", command)
            }
            try await until("all three hold a permit") { try await tool.inspect("s").holders.count == 3 }
            let holder = try await tool.inspect("s").holders[1]
            let one = try await tool.run("release", "--force", "s", "--holder", holder.id, "--json")
            #expect(one.output == #"{"name":"s","released":1}"#)
            #expect(try await tool.run("release", "--force", "s", "--holder", holder.id).output == "no such holder")
            #expect(try await tool.inspect("s").holders.map(\.id).contains(holder.id) == false)
            #expect(try await tool.run("release", "--force", "s").output == "released for 2 holders")
            for child in holding { #expect(try await child.end().status == 74) }
        }
    }
}
