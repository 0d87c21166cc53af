// Commands that are run for the jobs of a mailbox.
import Foundation
import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCToolTestSupport

@Suite("redisdc work run", .serialized)
struct WorkRunTests {
    /// The lines of a file that commands append to.
    private func lines(_ tool: EngineTool, _ name: String = "log") -> [String] {
        ((try? String(contentsOfFile: tool.mark(name), encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
    }

    /// The numbers of jobs, as `redisdc work show` prints them.
    private func status(_ tool: EngineTool) async throws -> String {
        try await tool.run("work", "show", "jobs").output
    }

    @Test("the command gets the body and the variables; its status decides what becomes of the job")
    func outcomes() async throws {
        try await withEngineTool { tool in
            for (type, body) in [("good", "a b"), ("twice", "c"), ("bad", "d")] {
                try await tool.run("mail", "send", "--to", "jobs", "--type", type, "--id", type, body)
            }
            let command =
                "echo \"$REDISDC_JOB $REDISDC_TYPE $REDISDC_ATTEMPT $(cat)\" >> \(tool.mark("log")); "
                + "case $REDISDC_TYPE in bad) exit 65;; twice) [ $REDISDC_ATTEMPT = 2 ];; esac"
            let end = try await tool.run(
                "work", "run", "jobs", "--pause", "0.01", "--limit", "3", "--", "sh", "-c", command)
            #expect(end.status == 0, "\(end.error)")
            #expect(
                lines(tool).sorted() == [
                    "bad/0 bad 1 d", "good/0 good 1 a b", "twice/0 twice 1 c", "twice/0 twice 2 c",
                ])
            #expect(try await status(tool) == "jobs: 0 messages, 0 jobs wait, 0 run, 1 have failed")
            let failed = try await tool.run("work", "list", "jobs", "--state", "failed").output
            #expect(failed.contains("(the command has ended with status 65)"))
            #expect(try await tool.run("work", "run", "jobs", "--", "no-such-program").status == 127)
            #expect(try await tool.run("work", "run", "jobs").status == 64)
            #expect(try await tool.run("work", "run", "jobs", "--ttl", "0.5", "--", "true").status == 65)
        }
    }

    @Test("a question is answered with what the command writes")
    func answers() async throws {
        try await withEngineTool { tool in
            let worker = try tool.start(
                "work", "run", "sums", "--limit", "2", "--", "sh", "-c",
                "read a b; [ -n \"$b\" ] || exit 65; echo $((a + b))")
            #expect(try await tool.run("mail", "ask", "--to", "sums", "--timeout", "100", "40 2").output == "42")
            let refused = try await tool.run("mail", "ask", "--to", "sums", "--timeout", "100", "40")
            #expect(refused.status == 65 && refused.error.contains("the command has ended with status 65"))
            #expect(try await worker.end().status == 0)
            let late = try await tool.run("mail", "ask", "--to", "nobody", "--timeout", "0.1", "x")
            #expect(late.status == 75)
        }
    }

    @Test("with a limit of one, one job is run; no process is left over after a command")
    func limit() async throws {
        try await withEngineTool { tool in
            try await tool.run(
                "mail", "send", "--to", "jobs", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12")
            // Each notes the children of redisdc that have ended and were not waited for.
            let command =
                "ps --ppid $PPID -o stat= > \(tool.mark("ps")); [ -s \(tool.mark("ps")) ] "
                + "&& grep -c Z \(tool.mark("ps")) >> \(tool.mark("log")); true"
            try await tool.run("work", "run", "jobs", "--limit", "1", "--", "sh", "-c", command)
            #expect(lines(tool) == ["0"])
            #expect(try await status(tool) == "jobs: 11 messages, 0 jobs wait, 0 run, 0 have failed")
            let rest = try await tool.run(
                "work", "run", "jobs", "--limit", "11", "--concurrency", "1", "--", "sh", "-c", command)
            #expect(rest.status == 0)
            #expect(lines(tool) == Array(repeating: "0", count: 12))
        }
    }

    @Test("an answer that is too large is refused, and says so to whoever asks")
    func tooLarge() async throws {
        try await withEngineTool { tool in
            let worker = try tool.start(
                "work", "run", "jobs", "--limit", "2", "--", "sh", "-c", "head -c $(cat) /dev/zero")
            let large = try await tool.run("mail", "ask", "--to", "jobs", "--timeout", "100", "1000001")
            #expect(large.status == 65 && large.error.contains("has written 1000001 bytes"), "\(large.error)")
            let largest = try tool.shell("redisdc mail ask --to jobs --timeout 100 1000000 | wc -c")
            #expect(try await largest.result() == "1000001")
            _ = try await worker.end()
        }
    }

    @Test("a body of the largest size reaches a command that reads it slowly, or not at all")
    func large() async throws {
        try await withEngineTool { tool in
            try await withTestClient(url: tool.server.url) { redis in
                try await withPostOffice(redis: redis) { office in
                    let body = [UInt8](repeating: 7, count: (1 << 20) - 100)
                    try await office.send(Message(bytes: body), to: "jobs")
                    try await office.send(Message(bytes: body, type: "unread"), to: "jobs")
                    let end = try await tool.run(
                        "work", "run", "jobs", "--limit", "2", "--", "sh", "-c",
                        "[ -n \"$REDISDC_TYPE\" ] || (sleep 0.1; wc -c) >> \(tool.mark("log"))")
                    #expect(end.status == 0)
                    #expect(lines(tool).map { $0.trimmingCharacters(in: .whitespaces) } == ["\(body.count)"])
                }
            }
        }
    }

    @Test("with SIGTERM the commands that run end, and no other begins; those that take too long run elsewhere")
    func stops() async throws {
        try await withEngineTool { tool in
            try await tool.run("mail", "send", "--to", "jobs", "first")
            let command =
                "trap 'echo ended >> \(tool.mark("log")); exit 1' TERM; echo $REDISDC_ATTEMPT >> \(tool.mark("log")); "
                + "echo > \(tool.mark("on")); \(tool.shellUntil("go"))"
            let worker = try tool.start("work", "run", "jobs", "--ttl", "30", "--", "sh", "-c", command)
            _ = try await tool.text(of: "on")
            kill(worker.processID, SIGTERM)
            tool.leaveMark("go")
            #expect(try await worker.end().status == 0)
            try await tool.run("mail", "send", "--to", "jobs", "second")
            #expect(lines(tool) == ["1"])
            #expect(try await status(tool).hasPrefix("jobs: 1 messages, 0 jobs wait, 0 run, 0"))
            // The second one does not end by itself.
            try FileManager.default.removeItem(atPath: tool.mark("go"))
            try FileManager.default.removeItem(atPath: tool.mark("on"))
            let other = try tool.start(
                "work", "run", "jobs", "--ttl", "30", "--grace", "0.1", "--", "sh", "-c", command)
            _ = try await tool.text(of: "on")
            kill(other.processID, SIGTERM)
            #expect(try await other.end().status == 0)
            #expect(lines(tool) == ["1", "1", "ended"])
            let jobs = try await tool.run("work", "list", "jobs").output
            #expect(jobs.contains("attempts 0"))
        }
    }

    @Test("a machine that cannot run the command ends its worker, and uses up no attempt")
    func unusable() async throws {
        try await withEngineTool { tool in
            // It can be found, and not be run.
            tool.leaveMark("broken")
            chmod(tool.mark("broken"), 0o755)
            try Data("#!/no/such/interpreter\n".utf8).write(to: URL(fileURLWithPath: tool.mark("broken")))
            try await tool.run("mail", "send", "--to", "jobs", "x")
            for _ in 0..<3 {
                let end = try await tool.run("work", "run", "jobs", "--attempts", "1", "--", tool.mark("broken"))
                #expect(end.status == 126 || end.status == 127, "\(end.status) \(end.error)")
            }
            #expect(try await tool.run("work", "list", "jobs").output.contains("attempts 0"))
            let end = try await tool.run("work", "run", "jobs", "--limit", "1", "--attempts", "1", "--", "true")
            #expect(end.status == 0)
        }
    }

    @Test("a job that is given up because its worker has died counts for the limit")
    func givenUp() async throws {
        try await withEngineTool { tool in
            try await tool.run("mail", "send", "--to", "jobs", "x")
            let words = ["work", "run", "jobs", "--ttl", "1", "--attempts", "1", "--limit", "1", "--", "sh", "-c"]
            let first = try tool.start(words + ["echo > \(tool.mark("on")); \(tool.shellUntil("never"))"])
            _ = try await tool.text(of: "on")
            try await first.kill9()
            let second = try await tool.start(words + ["exit 3"]).end()
            #expect(second.status == 0)
            #expect(try await status(tool) == "jobs: 0 messages, 0 jobs wait, 0 run, 1 have failed")
        }
    }

    @Test("a command that writes an answer without end is terminated")
    func endless() async throws {
        try await withEngineTool { tool in
            let worker = try tool.start("work", "run", "jobs", "--limit", "1", "--", "yes")
            let refused = try await tool.run("mail", "ask", "--to", "jobs", "--timeout", "100", "x")
            #expect(refused.status == 65 && refused.error.contains("an answer has at most"), "\(refused.error)")
            #expect(try await worker.end().status == 0)
        }
    }

    @Test("a job that is cancelled has its command terminated")
    func cancelled() async throws {
        try await withEngineTool { tool in
            try await tool.run("mail", "send", "--to", "jobs", "x")
            let worker = try tool.start(
                "work", "run", "jobs", "--ttl", "9", "--", "sh", "-c",
                "trap 'echo ended >> \(tool.mark("log")); exit 1' TERM; echo > \(tool.mark("on")); "
                    + tool.shellUntil("never"))
            _ = try await tool.text(of: "on")
            let job = try #require(
                try await tool.run("work", "list", "jobs", "--state", "running").output.split(separator: " ").first)
            try await tool.run("work", "cancel", "jobs", String(job))
            try await until("it has ended") { lines(tool).contains("ended") }
            try await until("it is forgotten") {
                try await status(tool) == "jobs: 0 messages, 0 jobs wait, 0 run, 0 have failed"
            }
            kill(worker.processID, SIGTERM)
            #expect(try await worker.end().status == 0)
        }
    }

    #if os(Linux)
        @Test("a command is ended of which redisdc could not tell the guard the process id, and no other one")
        func stoppedAtStart() async throws {
            try await withEngineTool { tool in
                let names = [UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max)]
                let commands = try names.enumerated().map { number, name in
                    try Child(
                        "sh",
                        [
                            "-c",
                            "trap 'exit 7' TERM; echo > \(tool.mark("on\(number)")); \(tool.shellUntil("never"))",
                        ], environment: ["REDISDC_GUARD": "\(name)"])
                }
                for number in commands.indices { _ = try await tool.text(of: "on\(number)") }
                // A guard without redisdc does not look until the end of a long lease for what was never started.
                let unneeded = try tool.shell(
                    "printf 'starting 1 1\\nuntil %s\\n' \(Int64.max) | redisdc lease-guard 60000")
                let other = try Child(
                    "sh", ["-c", tool.shellUntil("go")], environment: ["REDISDC_GUARD": "\(names[1])"])
                // The first one was told to be started, and the second one was started.
                let guarded = try tool.shell(
                    "printf 'starting %s 1\\nstarting %s 1\\nfailed %s\\nuntil 1\\n' \(names[0]) \(names[1]) \(names[1]) "
                        + "| redisdc lease-guard 60000")
                #expect(try await commands[0].end().status == 7)
                _ = try await guarded.result()
                _ = try await unneeded.result()
                #expect(commands[1].isRunning && other.isRunning)
                tool.leaveMark("go")
                _ = try await other.end()
                try await commands[1].kill9()
            }
        }
    #endif

    @Test(
        "if redisdc is stopped or killed, its command ends, and another worker runs the job afterwards",
        arguments: [SIGSTOP, SIGKILL])
    func dies(number: Int32) async throws {
        try await withEngineTool { tool in
            try await tool.run("mail", "send", "--to", "jobs", "x")
            let command =
                "trap 'echo ended >> \(tool.mark("log")); exit 1' TERM; echo $REDISDC_ATTEMPT >> \(tool.mark("log")); "
                + "echo > \(tool.mark("on$REDISDC_ATTEMPT")); [ $REDISDC_ATTEMPT = 2 ] || \(tool.shellUntil("never"))"
            let words = ["work", "run", "jobs", "--ttl", "20", "--limit", "1", "--", "sh", "-c", command]
            let first = try tool.start(words)
            _ = try await tool.text(of: "on1")
            kill(first.processID, number)
            #expect(try await tool.start(words).end().status == 0)
            try await until("both have run") { lines(tool).count == 3 }
            // The first command ends a tenth of the TTL before the second one can begin.
            #expect(lines(tool) == ["1", "ended", "2"])
            if number == SIGSTOP { kill(first.processID, SIGCONT) }
            try await first.kill9()
        }
    }
}
