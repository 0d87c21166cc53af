import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCToolTestSupport

@Suite("redisdc sem", .serialized)
struct EngineSemTests {
    @Test("create, signal, wait, value, resize and destroy work, as text and as JSON")
    func lifeCycle() async throws {
        try await withEngineTool { tool in
            #expect(try await tool.run("sem", "create", "s", "--permits", "2").output == "created with 2 permits")
            #expect(try await tool.run("sem", "create", "s", "--permits", "2").output == "exists with 2 permits")
            #expect(try await tool.run("sem", "signal", "s", "-n", "3").output == "signalled 3")
            #expect(try await tool.run("sem", "value", "s").output == "5")
            #expect(try await tool.run("sem", "value", "s", "--json").output == #"{"name":"s","value":5}"#)
            #expect(try await tool.run("sem", "wait", "s").output == "acquired")
            #expect(try await tool.run("sem", "wait", "s", "-n", "2", "--timeout", "0").status == 0)
            #expect(try await tool.run("--json", "sem", "value", "s").output == #"{"name":"s","value":2}"#)
            let resize = try await tool.run("sem", "resize", "s", "--permits", "0", "--json")
            #expect(resize.output == #"{"name":"s","permits":0}"#)
            #expect(try await tool.run("sem", "value", "s").output == "0")
            #expect(try await tool.run("sem", "destroy", "s").output == "destroyed")
            let again = try await tool.run("sem", "destroy", "s", "--json")
            #expect(again.status == 0 && again.output == #"{"destroyed":false,"name":"s"}"#)
        }
    }

    @Test("a command on a missing semaphore says how to create it, and does not create it")
    func missing() async throws {
        try await withEngineTool { tool in
            for words in [["signal"], ["wait", "--timeout", "0"], ["value"], ["resize", "--permits", "1"]] {
                let end = try await Child(
                    "redisdc", ["sem", words[0], "s"] + words.dropFirst(), environment: ["REDIS_URL": tool.server.url]
                ).end()
                #expect(end.status == 65, "\(words)")
                #expect(end.error.contains("redisdc sem create s --permits N"))
                #expect(end.error.split(separator: "\n").count == 1 && end.output.isEmpty)
            }
            let elsewhere = try await tool.run("sem", "value", "s", "--namespace", "game")
            #expect(elsewhere.error.contains("--permits N --namespace game"))
        }
    }

    @Test("a failure has its exit status and one line on standard error")
    func statuses() async throws {
        try await withEngineTool(.init(aclUsers: ["nobody on >pw ~* &* +@all -eval -evalsha"])) { tool in
            try await tool.run("sem", "create", "s", "--permits", "0")
            #expect(try await tool.run("sem", "wait", "s", "--timeout", "-1").status == 64)
            #expect(try await tool.run("sem", "wait", "s", "--hold").status == 64)
            #expect(try await tool.run("sem", "wait", "s", "--", "true").status == 64)
            #expect(try await tool.run("sem", "wait", "s", "--hold", "--ttl", "0.5", "--", "true").status == 64)
            #expect(try await tool.run("sem", "signal", "s", "-n", "0").status == 65)
            let name = try await tool.run("sem", "value", "a{b")
            #expect(name.status == 65)
            #expect(name.error.split(separator: "\n").count == 1 && name.output.isEmpty)
            let conflict = try await tool.run("sem", "create", "s", "--permits", "1")
            #expect(conflict.status == 65 && conflict.error.contains("0 permits"))
            #expect(try await tool.run("sem", "wait", "s", "--timeout", "0").status == 75)
            let late = try await tool.run("sem", "wait", "s", "--timeout", "0.05", "--json")
            #expect(late.status == 75 && late.output == #"{"acquired":false,"name":"s"}"#)
            #expect(try await tool.run("sem", "value", "s", url: "redis://127.0.0.1:1").status == 69)
            let url = tool.server.url.replacing("redis://", with: "redis://nobody:pw@")
            for command in ["value", "wait"] {
                #expect(try await tool.run("sem", command, "s", url: url).status == 77)
            }
        }
    }

    @Test("namespaces are separate, and the number of partitions is read from Redis")
    func namespaces() async throws {
        try await withEngineTool { tool in
            let words = ["sem", "create", "s", "--permits", "1", "--namespace", "game", "--partitions", "4"]
            #expect(try await Child("redisdc", words, environment: ["REDIS_URL": tool.server.url]).end().status == 0)
            #expect(try await tool.run("--namespace", "game", "sem", "value", "s").output == "1")
            #expect(try await tool.run("sem", "value", "s").status == 65)
            let other = try await tool.run("sem", "value", "s", "--namespace", "game", "--partitions", "2")
            #expect(other.status == 65 && other.error.contains("4") && other.error.contains("2"))
            #expect(try await tool.run("sem", "value", "s", "--namespace", "a:b").status == 65)
        }
    }

    @Test("a wait ends when another process signals, and fails when the semaphore is destroyed")
    func woken() async throws {
        try await withEngineTool { tool in
            try await tool.run("sem", "create", "s", "--permits", "0")
            let first = try tool.start("sem", "wait", "s", "-n", "2", "--json")
            try await tool.untilWaiting(1, for: "s")
            let second = try tool.start("sem", "wait", "s")
            try await tool.untilWaiting(2, for: "s")
            try await tool.run("sem", "signal", "s", "-n", "2")
            #expect(try await first.result() == #"{"acquired":true,"name":"s"}"#)
            try await tool.run("sem", "destroy", "s")
            #expect(try await second.end().status == 75)
        }
    }

    @Test("Ctrl-C during a wait exits with 130 and consumes nothing")
    func interrupt() async throws {
        try await withEngineTool { tool in
            try await tool.run("sem", "create", "s", "--permits", "0")
            for round in 0..<6 {
                let wait = try tool.start("sem", "wait", "s")
                try await tool.untilWaiting(1, for: "s")
                let signalling = round % 2 == 1 ? try tool.start("sem", "signal", "s") : nil
                wait.interrupt()
                let end = try await wait.end()
                _ = try await signalling?.end()
                #expect(end.status == 130 || end.status == 0 && signalling != nil, "\(end.error)")
                let left = (signalling == nil ? 0 : 1) - (end.status == 0 ? 1 : 0)
                #expect(try await tool.run("sem", "value", "s").output == "\(left)")
                if left == 1 { try await tool.run("sem", "wait", "s") }
            }
        }
    }

    @Test("wait --hold holds the permits while the command runs, and releases them at its end")
    func hold() async throws {
        try await withEngineTool { tool in
            try await tool.run("sem", "create", "s", "--permits", "3")
            let command = "\(tool.path) sem value s; echo $REDISDC_FENCE; exit 4"
            let end = try await tool.run("sem", "wait", "s", "-n", "2", "--hold", "--", "sh", "-c", command)
            #expect(end.status == 4)
            let lines = end.output.split(separator: "\n")
            #expect(lines.first == "1")
            #expect(lines.last.flatMap { UInt64($0) } ?? 0 > 0)
            #expect(try await tool.run("sem", "value", "s").output == "3")
        }
    }

    @Test("wait --hold terminates the command and exits with 74 when an operator releases its permits")
    func holdLost() async throws {
        try await withEngineTool { tool in
            try await tool.run("sem", "create", "s", "--permits", "1")
            let command = "echo > \(tool.mark("on")); \(tool.shellUntil("never"))"
            let holding = try tool.start("sem", "wait", "s", "--hold", "--", "sh", "-c", command)
            _ = try await tool.text(of: "on")
            #expect(try await tool.run("release", "--force", "s").status == 0)
            #expect(try await holding.end().status == 74)
            #expect(try await tool.run("sem", "value", "s").output == "1")
        }
    }
}
