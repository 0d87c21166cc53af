import CoordinationBase
import Foundation
import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCToolTestSupport

/// A line of the tool's JSON.
private struct Line: Decodable {
    var index: Int?
    var type: String?
    var id: String?
    var body: String?
    var status: String?
    var cursor: String?
    var indices: [String: [Int]]?
    var durability: String?
    var messages: Int?
}

private func lines(_ output: String) throws -> [Line] {
    try output.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
}

@Suite("redisdc mail")
struct MailToolTests {
    @Test("listen prints sent messages, and ack removes them")
    func roundTrip() async throws {
        try await withEngineTool { tool in
            let sent = try await tool.run(
                "mail", "send", "--to", "alice,bob", "--id", "x", "--type", "chat", "hello", "world", "--json")
            #expect(sent.status == 0)
            let receipt = try lines(sent.output)[0]
            #expect(receipt.id == "x" && receipt.indices == ["alice": [1, 2], "bob": [1, 2]])
            #expect(receipt.durability == "memory")
            let received = try lines(try await tool.run("mail", "listen", "alice", "--timeout", "0", "--json").output)
            #expect(received.map(\.body) == ["hello", "world", nil])
            #expect(received[0].index == 1 && received[0].type == "chat" && received[0].id == "x/0")
            #expect(received[2].status == "messages")
            let cursor = try #require(received[2].cursor)
            #expect(try await tool.run("mail", "peek", "alice").output == "1  chat  hello\n2  chat  world")
            #expect(try await tool.run("mail", "ack", "alice", cursor).status == 0)
            #expect(try await tool.run("mail", "peek", "alice").output == "")
            let nothing = try await tool.run("mail", "listen", "alice", "--after", cursor, "--timeout", "0", "--json")
            #expect(nothing.status == 75)
            #expect(try lines(nothing.output).map(\.status) == ["timedOut"])
        }
    }

    @Test("listen --follow survives a restart of the server and acknowledges what it has printed")
    func follow() async throws {
        try await withEngineTool(.init(persistence: .appendOnly(fsync: .always))) { tool in
            // Into a file: what stays in a pipe is not acknowledged.
            let options = "--follow --timeout 300 --json"
            let listening = try Child(
                "sh", ["-c", "exec \(tool.path) mail listen alice \(options) > \(tool.mark("output"))"],
                environment: ["REDIS_URL": tool.server.url])
            try await tool.run("mail", "send", "--to", "alice", "one")
            // A command that begins while there is no server fails.
            try await until("it listens") {
                try await tool.run("mail", "inspect", "alice").output.contains("listening processes: 1")
            }
            await tool.server.kill()
            try await tool.server.restart()
            try await tool.run("mail", "send", "--to", "alice", "two")
            try await until("both messages are acknowledged") {
                try await tool.run("mail", "peek", "alice").output == ""
            }
            listening.interrupt()
            let end = try await listening.end()
            #expect(end.status == 130 && end.error == "redisdc: interrupted")
            let empty = try await tool.run("mail", "inspect", "alice").output
            #expect(empty.hasPrefix("alice: 0 messages (0 bytes), the last was 2\n"))
            let output = try String(contentsOfFile: tool.mark("output"), encoding: .utf8)
            #expect(try lines(output).compactMap(\.body) == ["one", "two"])
        }
    }

    @Test("inspect and delete report the mailbox, and invalid input is rejected")
    func views() async throws {
        try await withEngineTool { tool in
            #expect(try await tool.run("mail", "inspect", "alice").status == 65)
            #expect(try await tool.run("mail", "delete", "alice").status == 65)
            try await tool.run("mail", "send", "--to", "alice", "a", "b")
            try await tool.run("mail", "listen", "alice", "--device", "phone", "--timeout", "0")
            let view = try await tool.run("mail", "inspect", "alice", "--json")
            #expect(try lines(view.output)[0].messages == 2)
            let words = try await tool.run("mail", "inspect", "alice").output
            #expect(words.contains("alice: 2 messages") && words.contains("device phone: acknowledged 0"))
            #expect(try await tool.run("mail", "listen", "alice", "--after", "rubbish").status == 65)
            #expect(try await tool.run("mail", "send", "--to", "a{b", "x").status == 65)
            #expect(try await tool.run("mail", "send", "--to", "alice", "x", "--fsynced").status == 65)
            #expect(try await tool.run("mail", "send", "--to", "alice").status == 64)
            #expect(try await tool.run("mail", "delete", "alice").output == "deleted, with 2 messages")
        }
    }

    @Test("work lists jobs with their reasons, tries them again, cancels them, and pauses workers")
    func work() async throws {
        try await withEngineTool { tool in
            try await tool.run("mail", "send", "--to", "pictures", "--order", "cat", "cat.png", "dog.png")
            try await withTestClient(url: tool.server.url) { redis in
                var configuration = PostOfficeConfiguration()
                configuration.callTimeout = patience
                try await withPostOffice(redis: redis, configuration: configuration) { office in
                    let mailbox = try office.mailbox("pictures")
                    let runs = Locked<[String]>([])
                    let work = Task {
                        try await mailbox.work { job in
                            runs.withLock { $0.append(job.message.text) }
                            throw JobRejection("too large")
                        }
                    }
                    try await until("both have failed") { try await mailbox.workStatus().failed == 2 }
                    let shown = try await tool.run("work", "show", "pictures").output
                    #expect(shown == "pictures: 0 messages, 0 jobs wait, 0 run, 2 have failed")
                    let failed = try await tool.run("work", "list", "pictures", "--state", "failed").output
                    let lines = failed.split(separator: "\n").map(String.init)
                    let texts = Set(lines.map { String($0.suffix(7)) })
                    #expect(texts == ["dog.png", "cat.png"])
                    #expect(lines.allSatisfy { $0.contains("attempts 1  order cat  (too large)  ") })
                    let ids = lines.map { String($0.prefix(16)) }

                    try await tool.run("work", "pause", "pictures")
                    let again = try await tool.start(["work", "retry", "pictures"] + ids).end()
                    #expect(again.output == "2 of 2 are tried again")
                    #expect(try await tool.run("work", "retry", "pictures", ids[0]).status == 65)
                    let paused = try await tool.run("work", "show", "pictures").output
                    #expect(paused.hasSuffix("1 jobs wait, 0 run, 0 have failed, workers are paused"))
                    #expect(try await tool.run("work", "cancel", "pictures", ids[1]).output == "1 of 1 are cancelled")
                    #expect(runs.withLock { $0 } == ["cat.png", "dog.png"])
                    try await tool.run("work", "resume", "pictures")
                    try await until("the other one is run again") { runs.withLock { $0.count } == 3 }
                    work.cancel()
                    try await work.value
                    #expect(try await tool.run("work", "cancel", "pictures", ids[1]).status == 65)
                    #expect(try await tool.run("work", "cancel", "pictures", "rubbish").status == 65)
                }
            }
        }
    }

    @Test("the mailbox example delivers everything in order and once although processes are killed")
    func example() async throws {
        try await withEngineTool { tool in
            let script = packageRoot.appendingPathComponent("Examples/Mailbox/run.sh").path
            let program = URL(fileURLWithPath: tool.path).deletingLastPathComponent().appendingPathComponent("mailbox")
            let end = try await Child(
                "bash", [script, "500"], environment: ["REDIS_URL": tool.server.url, "MAILBOX": program.path]
            ).end()
            #expect(end.status == 0, "\(end.output) \(end.error)")
            #expect(end.output.components(separatedBy: "in order, once").count == 5)
        }
    }
}
