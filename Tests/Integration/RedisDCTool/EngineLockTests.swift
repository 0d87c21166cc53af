import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCToolTestSupport

@Suite("redisdc lock", .serialized)
struct EngineLockTests {
    /// A shell command that leaves the mark `on` and then waits for `mark`.
    private func untilMark(_ mark: String, _ tool: EngineTool) -> String {
        "echo > \(tool.mark("on")); \(tool.shellUntil(mark))"
    }

    @Test("the command gets a growing fencing token in its environment, and inherits the standard streams")
    func fence() async throws {
        try await withEngineTool { tool in
            var last: UInt64 = 0
            for _ in 0..<3 {
                let end = try await tool.run("lock", "m", "--", "sh", "-c", "echo $REDISDC_FENCE; echo aside >&2")
                #expect(end.status == 0 && end.error == "aside")
                let fence = try #require(UInt64(end.output))
                #expect(fence > last)
                last = fence
            }
            let piped = try await Child(
                "sh", ["-c", "echo hello | \(tool.path) lock m -- cat"], environment: ["REDIS_URL": tool.server.url]
            ).result()
            #expect(piped == "hello")
        }
    }

    @Test("the exit status is that of the command, or 128 plus the signal that killed it")
    func status() async throws {
        try await withEngineTool { tool in
            #expect(try await tool.run("lock", "m", "--", "sh", "-c", "exit 7").status == 7)
            #expect(try await tool.run("lock", "m", "--", "sh", "-c", "kill -9 $$").status == 137)
            let missing = try await tool.run("lock", "m", "--", "no-such-program")
            #expect(missing.status == 127 && missing.error.hasSuffix("no such program"))
            #expect(FileManager.default.createFile(atPath: tool.mark("plain.sh"), contents: Data("echo".utf8)))
            let plain = try await tool.run("lock", "m", "--", tool.mark("plain.sh"))
            #expect(plain.status == 126 && plain.error.contains("plain.sh is not executable; use chmod +x"))
            let folder = try await tool.run("lock", "m", "--", tool.folder.path)
            #expect(folder.status == 126 && folder.error.hasSuffix("is a folder"))
            #expect(try await tool.run("lock", "m").status == 64)
            #expect(try await tool.run("lock", "m", "true").status == 64)
            #expect(try await tool.run("lock", "m", "--ttl", "0.9", "--", "true").status == 64)
            #expect(try await tool.run("lock", "a{b", "--", "true").status == 65)
            try await tool.run("sem", "create", "s", "--permits", "1")
            #expect(try await tool.run("lock", "s", "--", "true").status == 65)
            #expect(try await tool.inspect("m").kind == "none")
        }
    }

    @Test("locks of the same name exclude each other, and a waiter acquires the lock when its holder ends")
    func exclusion() async throws {
        try await withEngineTool { tool in
            let log = tool.mark("log")
            let first = try tool.start(
                "lock", "m", "--", "sh", "-c", "\(untilMark("go", tool)); echo first >> \(log)")
            _ = try await tool.text(of: "on")
            #expect(try await tool.run("lock", "m", "--timeout", "0", "--", "true").status == 75)
            #expect(try await tool.run("lock", "m", "--timeout", "0.05", "--", "true").status == 75)
            let second = try tool.start("lock", "m", "--", "sh", "-c", "echo second >> \(log)")
            try await tool.untilWaiting(1, for: "m")
            #expect(try await tool.run("lock", "other", "--timeout", "0", "--", "true").status == 0)
            tool.leaveMark("go")
            _ = try await first.result()
            _ = try await second.result()
            #expect(try await tool.text(of: "log") == "first\nsecond")
        }
    }

    @Test("no command runs under a lease that no replica has confirmed, and nothing stays locked")
    func durability() async throws {
        try await withEngineTool { tool in
            let refused = try await tool.run("lock", "m", "--replicated", "1", "--", "echo", "runs")
            #expect(refused.status == 75 && !refused.output.contains("runs"), "\(refused.error)")
            #expect(refused.error.contains("the lease was released"), "\(refused.error)")
            #expect(try await tool.run("lock", "m", "--timeout", "0", "--", "true").status == 0)
            #expect(try await tool.run("lock", "m", "--replicated", "0", "--", "true").status == 64)
            #expect(try await tool.run("lock", "m", "--replicated", "1", "--fsynced", "--", "true").status == 64)
            #expect(try await tool.run("sem", "create", "s", "--permits", "0").status == 0)
            #expect(try await tool.run("sem", "signal", "s", "--replicated", "1").status == 75)
            #expect(try await tool.run("sem", "value", "s").output.contains("1"))
        }
    }

    @Test("of eight concurrent processes at most one holds the lock")
    func many() async throws {
        try await withEngineTool { tool in
            let command = "mkdir \(tool.mark("inside")) && rmdir \(tool.mark("inside"))"
            let all = try (0..<8).map { _ in try tool.start("lock", "m", "--", "sh", "-c", command) }
            for one in all { _ = try await one.result() }
        }
    }

    @Test(
        "SIGINT and SIGTERM are forwarded to the command, and the lock is held until the command ends",
        arguments: [SIGINT, SIGTERM])
    func signals(number: Int32) async throws {
        try await withEngineTool { tool in
            let command = """
                trap 'echo > \(tool.mark("told")); \(tool.shellUntil("go")); exit 9' \(number)
                \(untilMark("never", tool))
                """
            let holding = try tool.start("lock", "m", "--", "sh", "-c", command)
            _ = try await tool.text(of: "on")
            kill(holding.processID, number)
            _ = try await tool.text(of: "told")
            #expect(try await tool.run("lock", "m", "--timeout", "0", "--", "true").status == 75)
            tool.leaveMark("go")
            let end = try await holding.end()
            #expect(end.status == 9 && !end.error.contains("redisdc"))
            #expect(try await tool.run("lock", "m", "--timeout", "0", "--", "true").status == 0)
        }
    }

    @Test("a forwarded signal kills a command without a handler, and redisdc exits with the same status")
    func killedBySignal() async throws {
        try await withEngineTool { tool in
            let holding = try tool.start("lock", "m", "--", "sh", "-c", untilMark("never", tool))
            _ = try await tool.text(of: "on")
            kill(holding.processID, SIGTERM)
            #expect(try await holding.end().status == 128 + SIGTERM)
        }
    }

    @Test("Ctrl-C while waiting for the lock exits with 130 and does not start the command")
    func interruptedWait() async throws {
        try await withEngineTool { tool in
            let holding = try tool.start("lock", "m", "--", "sh", "-c", untilMark("go", tool))
            _ = try await tool.text(of: "on")
            let waiting = try tool.start("lock", "m", "--", "touch", tool.mark("started"))
            try await tool.untilWaiting(1, for: "m")
            waiting.interrupt()
            let end = try await waiting.end()
            #expect(end.status == 130 && end.error == "redisdc: interrupted")
            tool.leaveMark("go")
            _ = try await holding.result()
            #expect(!tool.hasMark("started"))
        }
    }

    @Test("a lost lock terminates the command with SIGTERM and exits with 74")
    func lost() async throws {
        try await withEngineTool { tool in
            let command = "trap 'echo terminated; exit 3' TERM; \(untilMark("never", tool))"
            let holding = try tool.start("lock", "m", "--", "sh", "-c", command)
            _ = try await tool.text(of: "on")
            #expect(try await tool.run("release", "--force", "m").output == "released for 1 holder")
            let end = try await holding.end()
            #expect(end.status == 74)
            #expect(end.output == "terminated")
            let lines = end.error.split(separator: "\n").filter { $0.hasPrefix("redisdc: ") }
            #expect(lines.count == 1 && lines.first?.contains("lost \"m\" before the command ended") == true)
        }
    }

    @Test("a command that ignores SIGTERM is killed after the grace period, with the processes it has started")
    func grace() async throws {
        try await withEngineTool { tool in
            let stubborn = "trap '' TERM; echo $$ > \(tool.mark("child")); \(tool.shellUntil("never"))"
            try stubborn.write(toFile: tool.mark("stubborn"), atomically: true, encoding: .utf8)
            for command in ["exec sh \(tool.mark("stubborn"))", "sh \(tool.mark("stubborn")) > /dev/null 2>&1 & wait"] {
                try? FileManager.default.removeItem(atPath: tool.mark("child"))
                let holding = try tool.start("lock", "m", "--grace", "0.1", "--", "sh", "-c", command)
                let child = try #require(Int32(try await tool.text(of: "child")))
                try await tool.run("release", "--force", "m")
                #expect(try await holding.end().status == 74)
                try await until("the child is gone") { kill(child, 0) != 0 }
            }
        }
    }

    @Test("a lock is lost when Redis loses its data or is unreachable for the TTL")
    func lostWithRedis() async throws {
        try await withEngineTool { tool in
            for how in ["data", "server"] {
                try? FileManager.default.removeItem(atPath: tool.mark("on"))
                let holding = try tool.start("lock", "m", "--ttl", "5", "--", "sh", "-c", untilMark("never", tool))
                _ = try await tool.text(of: "on")
                if how == "data" {
                    try await withRedisClient(url: tool.server.unixURL) { _ = try await $0.send("FLUSHALL") }
                } else {
                    try await tool.server.pause()
                }
                let end = try await holding.end()
                #expect(end.status == 74, "\(how): \(end.error)")
            }
            try await tool.server.resume()
        }
    }

    @Test(
        "when redisdc is stopped or killed, its command is terminated before the next holder runs",
        arguments: [SIGSTOP, SIGKILL])
    func stopped(number: Int32) async throws {
        try await withEngineTool { tool in
            // A process that the command has started must not survive either.
            let started =
                "trap 'echo > \(tool.mark("ended")); exit' TERM; echo > \(tool.mark("on")); \(tool.shellUntil("never"))"
            try started.write(toFile: tool.mark("started"), atomically: true, encoding: .utf8)
            let holding = try tool.start(
                "lock", "m", "--ttl", "20", "--", "sh", "-c", "sh \(tool.mark("started")) & wait")
            _ = try await tool.text(of: "on")
            let next = try tool.start(
                "lock", "m", "--ttl", "6", "--", "sh", "-c", "[ -e \(tool.mark("ended")) ] && echo alone || echo both")
            try await tool.untilWaiting(1, for: "m")
            kill(holding.processID, number)
            #expect(try await next.result() == "alone")
            kill(holding.processID, SIGCONT)
            #expect(try await holding.end().status == (number == SIGSTOP ? 74 : SIGKILL))
        }
    }

    @Test("the guard of a lease ends with the command, and does not end one that runs longer than the TTL")
    func guardEnds() async throws {
        try await withEngineTool { tool in
            let holding = try tool.start(
                "lock", "m", "--ttl", "9", "--", "sh", "-c", "\(untilMark("go", tool)); exit 5")
            _ = try await tool.text(of: "on")
            let guards = try Self.guards(of: holding.processID)
            let heartbeats = try await scriptCalls(tool)
            // Twice the TTL.
            try await until("the session is renewed") { try await scriptCalls(tool) >= heartbeats + 6 }
            tool.leaveMark("go")
            #expect(try await holding.end().status == 5)
            #if os(Linux)
                #expect(guards.count == 1)
            #endif
            for id in guards { try await until("the guard is gone") { kill(id, 0) != 0 } }
        }
    }

    /// The guards that a process has started; empty if the system has no `/proc`.
    private static func guards(of parent: Int32) throws -> [Int32] {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc"))?.compactMap { Int32($0) } ?? []
        return processes.filter { id in
            let status = (try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8)) ?? ""
            // After the name, which is between parentheses: the state and the parent.
            let words = (status.lastIndex(of: ")").map { status[$0...] } ?? "").split(separator: " ")
            let command = (try? String(contentsOfFile: "/proc/\(id)/cmdline", encoding: .utf8)) ?? ""
            return words.count > 2 && words[2] == "\(parent)" && command.contains("lease-guard")
        }
    }

    /// The number of script calls that the server has run.
    private func scriptCalls(_ tool: EngineTool) async throws -> Int {
        try await withRedisClient(url: tool.server.unixURL) { redis in
            try await redis.calls(of: "evalsha")
        }
    }

    #if os(Linux)
        @Test("on a terminal the command is in the foreground and can read")
        func terminal() async throws {
            try await withEngineTool { tool in
                let command = "\(tool.path) lock m -- sh -c 'read line; echo got $line'"
                let output = try await Child(
                    "sh", ["-c", "echo hello | script -qec \"$COMMAND\" /dev/null"],
                    environment: ["REDIS_URL": tool.server.url, "COMMAND": command]
                ).result()
                #expect(output.contains("got hello"))
            }
        }
    #endif
}
