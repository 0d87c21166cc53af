import Foundation
import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTool
@testable import RedisDCToolTestSupport

/// Commands whose output cannot be written, or is not read.
@Suite("The output of redisdc", .timeLimit(.minutes(10)))
struct OutputTests {
    /// For each command, arguments with which it prints something or runs until it is interrupted.
    /// `prepare` makes what they use.
    private static let invocations: [String: String] = [
        "demo": "demo 1", "doctor": "doctor", "verify": "verify --replay history", "inspect": "inspect seats",
        "lock": "lock held -- sh -c 'exit 7'", "rwlock": "rwlock shared --read -- sh -c 'exit 7'",
        "elect": "elect leader --watch", "top": "top --interval 0.05", "release": "release --force seats",
        "sem create": "sem create other --permits 1", "sem signal": "sem signal seats", "sem wait": "sem wait seats",
        "sem value": "sem value seats", "sem resize": "sem resize seats --permits 100",
        "sem destroy": "sem destroy doomed", "rate": "rate often --rate 100",
        "barrier wait": "barrier wait one --parties 1", "barrier destroy": "barrier destroy no-barrier --parties 1",
        "latch down": "latch down counted --count 9", "latch wait": "latch wait open --count 0",
        "latch remaining": "latch remaining counted --count 9", "latch destroy": "latch destroy no-latch --count 9",
        "mail send": "mail send --to bob hello", "mail listen": "mail listen alice --device d --follow",
        "mail ask": "mail ask --to sums --timeout 100 x", "mail ack": "mail ack alice CURSOR",
        "mail peek": "mail peek kept", "mail inspect": "mail inspect alice",
        "schedule list": "schedule list", "schedule cancel": "schedule cancel reminder",
        "work run": "work run commands --limit 1 -- sh -c 'exit 65'", "work list": "work list pictures --state failed",
        "work show": "work show pictures",
        "work retry": "work retry pictures JOB", "work cancel": "work cancel pictures JOB",
        "work pause": "work pause pictures", "work resume": "work resume pictures", "mail delete": "mail delete doomed",
        "presence snapshot": "presence snapshot lobby",
        "presence watch": "presence watch lobby", "presence put": "presence put lobby mine here --user me",
        "board submit": "board submit maze alice 2", "board top": "board top maze",
        "board around": "board around maze alice", "board rank": "board rank maze alice",
        "board remove": "board remove maze nobody", "match enqueue": "match enqueue duel alice --timeout 0.01",
        "match show": "match show duel TICKET", "match cancel": "match cancel duel TICKET",
        "match counts": "match counts duel", "classic create": "classic create list --permits 9",
        "classic signal": "classic signal list", "classic wait": "classic wait list",
        "classic value": "classic value list", "classic destroy": "classic destroy none",
        "publish": "publish news hello", "subscribe": "subscribe news --json",
    ]

    /// The commands that leave the output to another program, and their exit status.
    private static let runners: [String: Int32] = ["lock": 7, "rwlock": 7, "work run": 0]

    /// Makes what the commands use, and returns a mailbox's cursor, the id of a ticket and of a failed job.
    private func prepare(_ tool: EngineTool) async throws -> (cursor: String, ticket: String, job: String) {
        for words in [
            ["sem", "create", "seats", "--permits", "100"], ["sem", "create", "doomed", "--permits", "1"],
            ["classic", "create", "list", "--permits", "9"], ["board", "submit", "maze", "alice", "1"],
            ["mail", "send", "--to", "alice,kept,doomed,commands", "hello"],
            ["mail", "send", "--to", "alice", "--after", "3600", "--id", "reminder", "hello"],
            ["mail", "send", "--to", "alice", "--at", "2099-12-31T00:00:00Z", "later"],
            [
                "mail", "send", "--to", "alice", "--cron", "0 3 * * *", "--zone", "Europe/Berlin", "--id", "nightly",
                "x",
            ],
        ] { _ = try await tool.start(words).result() }
        try #"{"format":"redisdc verify","version":1,"seed":1,"ttl":1000,"families":[],"isLossless":true}"#
            .write(toFile: tool.mark("history"), atomically: true, encoding: .utf8)
        func value(_ name: String, in text: String) throws -> String {
            let found = text.firstRange(of: "\"\(name)\":\"").map { text[$0.upperBound...].prefix { $0 != "\"" } }
            return String(try #require(found, "\(text)"))
        }
        let mail = try await tool.run("mail", "listen", "alice", "--timeout", "0", "--json").output
        let match = try await tool.run("match", "enqueue", "duel", "zoe", "--timeout", "0.01", "--json").output
        try await failJob(tool)
        let jobs = try await tool.run("work", "list", "pictures", "--state", "failed", "--json").output
        return (try value("cursor", in: mail), try value("ticket", in: match), try value("job", in: jobs))
    }

    /// Lets a job of the mailbox "pictures" fail for good.
    private func failJob(_ tool: EngineTool) async throws {
        try await tool.run("mail", "send", "--to", "pictures", "cat.png")
        try await withTestClient(url: tool.server.url) { redis in
            var configuration = PostOfficeConfiguration()
            configuration.callTimeout = patience
            try await withPostOffice(redis: redis, configuration: configuration) { office in
                let mailbox = try office.mailbox("pictures")
                let work = Task { try await mailbox.work { _ in throw JobRejection("too large") } }
                try await until("it has failed") { try await mailbox.workStatus().failed == 1 }
                work.cancel()
                try await work.value
            }
        }
    }

    @Test(
        "every command exits with 73 when its output is full, and with 141 when nobody can read it",
        arguments: [
            (73, "exec redisdc COMMAND > /dev/full"),
            // Both ends of a pipe are opened, and the only one for reading is closed.
            (141, "mkfifo pipe-NUMBER; exec 4<> pipe-NUMBER 3> pipe-NUMBER 4>&-; exec redisdc COMMAND >&3 3>&-"),
        ])
    func everyCommand(status: Int32, script: String) async throws {
        try await withEngineTool { tool in
            let (cursor, ticket, job) = try await prepare(tool)
            // An object of the presence, for as long as this process runs.
            let present = try tool.start("presence", "put", "lobby", "seat", "taken", "--user", "zoe")
            try await until("the object exists") { try await !tool.run("presence", "snapshot", "lobby").output.isEmpty }
            let answering = try tool.start("work", "run", "sums", "--", "echo", "1")
            for (number, listed) in ListedCommand.all.enumerated() {
                let name = listed.words.dropFirst().joined(separator: " ")
                let invocation = try #require(Self.invocations[name], "there is no invocation of \(name)")
                let command = invocation.replacing("CURSOR", with: cursor).replacing("TICKET", with: ticket)
                    .replacing("JOB", with: job)
                let end = try await tool.shell(
                    script.replacing("NUMBER", with: "\(number)").replacing("COMMAND", with: command)
                ).end()
                let expected = Self.runners[name] ?? status
                #expect(end.status == expected, "\(name): \(end.error)")
                // A program that SIGPIPE ends says nothing.
                #expect(
                    end.error.contains("cannot write to standard output") == (expected == 73), "\(name): \(end.error)")
                if expected == 141 { #expect(end.error.isEmpty, "\(name): \(end.error)") }
            }
            #expect(Self.invocations.count == ListedCommand.all.count)
            for child in [present, answering] {
                child.interrupt()
                _ = try await child.end()
            }
        }
    }

    @Test("help and version exit with 73 when they cannot be printed, also to a closed descriptor")
    func helpAndVersion() async throws {
        try await withEngineTool { tool in
            for command in ["--help", "--version", "mail listen --help", "--generate-completion-script bash"] {
                for output in ["> /dev/full", ">&-"] {
                    let end = try await tool.shell("exec redisdc \(command) \(output)").end()
                    #expect(end.status == 73, "\(command) \(output)")
                }
            }
            // A connection would take the number of a closed descriptor.
            let end = try await tool.shell("exec redisdc sem value none >&- 2>&-").end()
            #expect(end.status == 65)
        }
    }

    @Test(
        "commands that print until they are interrupted end with their reader, although nothing happens",
        arguments: [
            "top --interval 1000", "subscribe quiet", "elect quiet --watch", "presence watch quiet",
            "mail listen quiet --follow", "mail listen quiet",
        ])
    func idle(command: String) async throws {
        try await withEngineTool { tool in
            // `read` ends with the first line; some of them print none.
            let reader = ["top", "elect", "presence"].contains { command.hasPrefix($0) } ? "read line" : "true"
            let end = try await tool.shell(
                "mkfifo pipe; { redisdc \(command); echo $? > status; } > pipe & \(reader) < pipe; wait"
            ).end()
            #expect(end.status == 0 && end.error.isEmpty, "\(end.error)")
            #expect(try await tool.text(of: "status") == "141")
        }
    }

    @Test("a one-shot command acts before it fails to print the result")
    func effect() async throws {
        try await withEngineTool { tool in
            try await tool.run("sem", "create", "seats", "--permits", "0")
            let end = try await tool.shell("{ redisdc sem signal seats; echo $? > status; } | true; cat status").end()
            #expect(["0", "141"].contains(end.output))
            #expect(try await tool.run("sem", "value", "seats").output == "1")
        }
    }

    @Test(
        "listen --follow does not acknowledge what it could not write",
        arguments: ["> /dev/full", ">&-", "| true"])
    func unwritten(output: String) async throws {
        try await withEngineTool { tool in
            for _ in 0..<3 { try await tool.run("mail", "send", "--to", "alice", "one", "two", "three") }
            let end = try await tool.shell("redisdc mail listen alice --follow \(output)").end()
            #expect(end.output.isEmpty)
            #expect(try await tool.run("mail", "peek", "alice").output.split(separator: "\n").count == 9)
        }
    }

    #if os(Linux)
        @Test("of messages in a pipe, listen --follow acknowledges those that the reader has taken")
        func unread() async throws {
            try await withEngineTool { tool in
                try await tool.run("mail", "send", "--to", "alice", "one", "two", "three")
                // The reader takes one line and goes when it may.
                let child = try tool.shell(
                    """
                    mkfifo pipe; { redisdc mail listen alice --follow --limit 1; echo $? > status; } > pipe &
                    { read line; echo $line > first; \(tool.shellUntil("go")); } < pipe; wait
                    """)
                #expect(try await tool.text(of: "first") == "one")
                func left() async throws -> [Substring] {
                    try await tool.run("mail", "peek", "alice").output.split(separator: "\n")
                }
                try await until("the message is acknowledged") { try await left().count == 2 }
                tool.leaveMark("go")
                _ = try await child.end()
                #expect(try await tool.text(of: "status") == "141")
                #expect(try await left().count == 2)
            }
        }
    #endif
}
