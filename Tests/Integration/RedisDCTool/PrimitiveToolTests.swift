import Foundation
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCToolTestSupport

@Suite("redisdc elect, rwlock, barrier, latch, rate", .serialized)
struct PrimitiveToolTests {
    private struct Leader: Decodable {
        var leads: Bool
        var node: String?
        var term: UInt64?
    }

    private func leader(_ tool: EngineTool) async throws -> Leader {
        let end = try await tool.run("elect", "e", "--show", "--json")
        return try JSONDecoder().decode(Leader.self, from: Data(end.output.utf8))
    }

    @Test("one candidate leads at a time, others can see it, and the next one leads when it ends")
    func elect() async throws {
        try await withEngineTool { tool in
            #expect(try await leader(tool).leads == false)
            let command = "echo $REDISDC_FENCE > \(tool.mark("on")); \(tool.shellUntil("go"))"
            let first = try tool.start("elect", "e", "--", "sh", "-c", command)
            let term = try #require(UInt64(try await tool.text(of: "on")))
            let watching = try tool.start("elect", "e", "--watch", "--json")
            defer { watching.interrupt() }
            let now = try await leader(tool)
            #expect(now.leads && now.term == term && now.node?.contains("redisdc sh") == true)
            #expect(try await tool.run("elect", "e", "--timeout", "0", "--", "true").status == 75)
            let second = try tool.start(
                "elect", "e", "--", "sh", "-c", "echo $REDISDC_FENCE > \(tool.mark("second")); exit 5")
            try await tool.untilWaiting(1, for: "e")
            tool.leaveMark("go")
            _ = try await first.result()
            #expect(try await second.end().status == 5)
            #expect(try #require(UInt64(try await tool.text(of: "second"))) > term)
            try await until("nobody leads") { try await leader(tool).leads == false }
            for more in [[], ["--show", "--", "true"], ["--show", "--watch"]] {
                let words = ["elect", "e"] + more
                let end = try await Child("redisdc", words, environment: ["REDIS_URL": tool.server.url]).end()
                #expect(end.status == 64, "\(words)")
            }
        }
    }

    @Test("readers hold a read-write lock together, and a writer alone")
    func readWriteLock() async throws {
        try await withEngineTool { tool in
            func hold(_ access: String, _ name: String) throws -> Child {
                let command = "echo > \(tool.mark(name)); \(tool.shellUntil("go-" + name))"
                return try tool.start("rwlock", "l", access, "--", "sh", "-c", command)
            }
            let readers = [try hold("--read", "one"), try hold("--read", "two")]
            _ = try await tool.text(of: "one")
            _ = try await tool.text(of: "two")
            #expect(try await tool.run("rwlock", "l", "--write", "--timeout", "0", "--", "true").status == 75)
            let writer = try hold("--write", "writer")
            try await tool.untilWaiting(1, for: "l")
            for name in ["go-one", "go-two"] { tool.leaveMark(name) }
            for reader in readers { _ = try await reader.result() }
            _ = try await tool.text(of: "writer")
            #expect(try await tool.run("rwlock", "l", "--read", "--timeout", "0", "--", "true").status == 75)
            tool.leaveMark("go-writer")
            _ = try await writer.result()
            #expect(try await tool.run("rwlock", "l", "--", "true").status == 64)
            #expect(try await tool.run("rwlock", "l", "--read", "--write", "--", "true").status == 64)
        }
    }

    @Test("a barrier opens when all parties have arrived; one that gives up is taken back, or breaks it")
    func barrier() async throws {
        try await withEngineTool { tool in
            let wait = ["barrier", "wait", "b", "--parties", "3", "--json"]
            #expect(try await tool.run("barrier", "wait", "b", "--parties", "3", "--timeout", "0.05").status == 75)
            for generation in 0..<2 {
                let parties = try (0..<3).map { _ in
                    try Child("redisdc", wait, environment: ["REDIS_URL": tool.server.url])
                }
                var places: Set<Int> = []
                for party in parties {
                    let output = try await party.result()
                    let report = try JSONDecoder().decode([String: Value].self, from: Data(output.utf8))
                    #expect(report["generation"]?.number == generation)
                    places.insert(try #require(report["index"]?.number))
                }
                #expect(places == [0, 1, 2])
            }
            #expect(try await tool.run("barrier", "wait", "b", "--parties", "4", "--timeout", "1").status == 65)
            #expect(try await tool.run("barrier", "destroy", "b", "--parties", "3").output == "destroyed")
            #expect(try await tool.run("barrier", "destroy", "b", "--parties", "3").output == "no such barrier")

            let breaking = ["barrier", "wait", "c", "--parties", "2", "--breaks"]
            let leaving = try tool.start(breaking)
            try await tool.untilWaiting(1, for: "c")
            kill(leaving.processID, SIGINT)
            _ = try await leaving.end()
            let late = try await Child("redisdc", breaking, environment: ["REDIS_URL": tool.server.url]).end()
            #expect(late.status == 75 && late.error.contains("broken"), "\(late.status) \(late.error)")
        }
    }

    /// A number or a text.
    private struct Value: Decodable {
        var number: Int?

        init(from decoder: any Decoder) throws {
            number = try? decoder.singleValueContainer().decode(Int.self)
        }
    }

    @Test("a latch opens when it is counted down, and an id counts once")
    func latch() async throws {
        try await withEngineTool { tool in
            let waiting = try tool.start("latch", "wait", "l", "--count", "2")
            try await tool.untilWaiting(1, for: "l")
            #expect(try await tool.run("latch", "wait", "l", "--count", "2", "--timeout", "0.05").status == 75)
            #expect(try await tool.run("latch", "down", "l", "--count", "2", "--id", "a").output == "1")
            #expect(try await tool.run("latch", "down", "l", "--count", "2", "--id", "a").output == "1")
            #expect(try await tool.run("latch", "remaining", "l", "--count", "2").output == "1")
            #expect(try await tool.run("latch", "down", "l", "--count", "3").status == 65)
            #expect(try await tool.run("latch", "down", "l", "--count", "2", "--id", "b").output == "0")
            #expect(try await waiting.result() == "open")
            #expect(
                try await tool.run("inspect", "l").output == "l: latch, open for all, 0 holding, 0 waiting")
            #expect(try await tool.run("latch", "destroy", "l", "--count", "2").output == "destroyed")
            #expect(try await tool.run("latch", "remaining", "l", "--count", "2").output == "2")
        }
    }

    @Test("a rate limit allows its burst, then refuses or waits")
    func rate() async throws {
        try await withEngineTool { tool in
            let ask = ["rate", "r", "--rate", "2", "--per", "3600"]
            func run(_ more: String...) async throws -> Child.End {
                try await Child("redisdc", ask + more, environment: ["REDIS_URL": tool.server.url]).end()
            }
            #expect(try await run("--timeout", "0").output == "allowed, 1 left")
            #expect(try await run().output == "allowed")
            let refused = try await run("--timeout", "0")
            #expect(refused.status == 75 && refused.error.contains("would in"))
            #expect(try await run("--timeout", "1").status == 75)
            #expect(try await run("--cost", "3").status == 65)
            #expect(try await tool.run("rate", "q", "--rate", "20").status == 0)
            #expect(try await tool.run("rate", "q", "--rate", "20", "--per", "0").status == 64)
        }
    }
}
