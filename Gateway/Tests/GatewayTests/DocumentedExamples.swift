import Foundation
import RedisDCTesting
import Testing

@testable import Gateway

/// The programs of docs/http.md, taken from the page and run against a gateway.
@Suite("Documented examples", .timeLimit(.minutes(10)))
struct DocumentedExamples {
    /// The page's code block that begins with a language.
    private static func example(_ language: String) throws -> String {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../docs/http.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let parts = text.components(separatedBy: "```\(language)\n")
        try #require(parts.count == 2, "the page has one example in \(language)")
        return try #require(parts[1].components(separatedBy: "```\n").first)
    }

    private static func has(_ programs: String...) -> Bool {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        return programs.allSatisfy { program in
            folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(program)") }
        }
    }

    /// Runs a program with an example as its input, and returns the example's output.
    private func output(_ program: String, _ arguments: [String], _ example: String, url: String) async throws -> String
    {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["GATEWAY": url]) { $1 }
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = output
        try process.run()
        input.fileHandleForWriting.write(Data(example.utf8))
        try input.fileHandleForWriting.close()
        let file = output.fileHandleForReading
        let bytes = await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: file.readDataToEndOfFile()) }
        }
        process.waitUntilExit()
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(process.terminationStatus == 0, "\(text)")
        return text
    }

    @Test("the Python program logs in, sends, reads and acknowledges", .enabled(if: has("python3")))
    func python() async throws {
        try await withLocalRedis { server in
            let node = try GatewayProcess.node(server)
            let url = try await node.url()
            for _ in 0..<2 {
                let text = try await output("python3", ["-"], try Self.example("python"), url: url)
                #expect(text == "alice: hello\n")
            }
            // It has acknowledged what it has read.
            #expect(try await TestClient(url, "alice", device: "laptop").mail().texts == [])
        }
    }

    @Test("the shell program logs in, sends and reads", .enabled(if: has("curl", "openssl")))
    func curl() async throws {
        try await withLocalRedis { server in
            let node = try GatewayProcess.node(server)
            let url = try await node.url()
            let text = try await output("sh", ["-es"], try Self.example("sh"), url: url)
            let lines = text.split(separator: "\n").map { Array($0.utf8) }
            try #require(lines.count == 2, "\(text)")
            #expect(try JSONParser.parse(lines[0])["indices"] == ["alice": [1, 1]])
            let page = try JSONParser.parse(lines[1])
            #expect(page["status"] == "messages" && page["messages"]?.array?.first?["text"] == "hello")
        }
    }
}
