import Foundation
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTool
@testable import RedisDCToolTestSupport

@Suite("The commands of the documentation", .timeLimit(.minutes(10)))
struct DocumentedCommandsTests {
    @Test("run as docs/tool.md shows them, one after the other")
    func run() async throws {
        try await withEngineTool(.init(persistence: .appendOnly(fsync: .always))) { tool in
            for script in ["backup.sh", "export.sh", "scheduler.sh", "render.sh", "resize.sh"] {
                let path = tool.mark(script)
                try "#!/bin/sh\ntest -n \"$REDISDC_FENCE\"\n".write(toFile: path, atomically: true, encoding: .utf8)
                try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
            }
            // Commands that run until they are interrupted, with the files that have their output.
            var running: [(command: String, child: Child, output: String)] = []
            var holder: Child?
            for command in try documentedCommands(of: "docs/tool.md") {
                switch command.split(separator: " ").dropFirst().joined(separator: " ") {
                case "inspect backup":
                    // Something to see, and to release by force later.
                    holder = try shell(tool, "redisdc lock backup -- sh -c '\(tool.shellUntil("never"))'")
                    try await until("the lock is held") { try await tool.inspect("backup").holders.count == 1 }
                    #expect(try await shell(tool, command).result().contains("redisdc"))
                case "release --force backup":
                    _ = try await shell(tool, command).result()
                    #expect(try await #require(holder).end().status == 74)
                case "barrier wait deployed --parties 3":
                    let parties = try (0..<3).map { _ in try shell(tool, command) }
                    for party in parties { _ = try await party.result() }
                case "latch wait imported --count 12":
                    let waiter = try shell(tool, command)
                    for id in 0..<12 {
                        _ = try await shell(tool, "redisdc latch down imported --count 12 --id \(id)").result()
                    }
                    _ = try await waiter.result()
                case "top", "mail listen alice --device phone --follow", "presence watch lobby",
                    "presence put lobby alice ready --user alice --grace 10", "subscribe --pattern 'match:*'":
                    let output = tool.mark("output-\(running.count)")
                    running.append((command, try shell(tool, "\(command) > \(output)"), output))
                case "mail ask --to sums --timeout 60 40+2":
                    let worker = try shell(
                        tool, "redisdc work run sums --limit 1 -- sh -c 'echo $(($(cat)))'")
                    #expect(try await shell(tool, command).result() == "42")
                    _ = try await worker.result()
                case "publish match:7 'kick-off'":
                    // The subscriber of the line before may not have subscribed yet.
                    try await until("the message reaches it") { try await shell(tool, command).result() == "1" }
                case "verify --for 10m":
                    // Tests of its own run it.
                    continue
                default: _ = try await shell(tool, command).result()
                }
            }
            for (command, child, output) in running {
                // `presence put` prints nothing; `presence watch` shows the object.
                if !command.contains(" put ") {
                    try await until("\(command) prints something") {
                        try FileManager.default.attributesOfItem(atPath: output)[.size] as? Int ?? 0 > 0
                    }
                }
                child.interrupt()
                #expect([0, 130].contains(try await child.end().status), "\(command)")
            }
            #expect(running.count == 5)
        }
    }

    /// Starts a command as a shell does, in the folder of the tool.
    private func shell(_ tool: EngineTool, _ command: String) throws -> Child {
        let words = "redisdc "
        let path = command.hasPrefix(words) ? tool.path + " " + command.dropFirst(words.count) : command
        return try Child(
            "sh", ["-c", "cd '\(tool.folder.path)' && exec \(path)"], environment: ["REDIS_URL": tool.server.url])
    }
}
