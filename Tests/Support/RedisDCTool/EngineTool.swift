import Foundation
import RedisDCTesting
import TestSupport
import Testing

/// Runs `redisdc` against a private server, with a folder in which commands leave marks (files).
struct EngineTool: Sendable {
    let server: LocalRedis
    let folder: URL

    /// Runs the tool to its end.
    @discardableResult
    func run(_ words: String..., url: String? = nil) async throws -> Child.End {
        try await Child("redisdc", words, environment: ["REDIS_URL": url ?? server.url]).end()
    }

    func start(_ words: String...) throws -> Child { try start(words) }

    func start(_ words: [String]) throws -> Child {
        try Child("redisdc", words, environment: ["REDIS_URL": server.url])
    }

    /// Starts a shell in the folder, for which `redisdc` is the program.
    func shell(_ script: String) throws -> Child {
        try Child(
            "sh", ["-c", "cd '\(folder.path)'; \(script.replacing("redisdc ", with: path + " "))"],
            environment: ["REDIS_URL": server.url])
    }

    /// The path of the program, for shells.
    var path: String { Bundle.main.executableURL!.deletingLastPathComponent().appendingPathComponent("redisdc").path }

    func mark(_ name: String) -> String { folder.appendingPathComponent(name).path }

    /// A shell command that waits for a mark, or for the end of the test.
    func shellUntil(_ name: String) -> String {
        "until [ -e \(mark(name)) ] || [ ! -d \(folder.path) ]; do sleep 0.01; done"
    }

    func hasMark(_ name: String) -> Bool { FileManager.default.fileExists(atPath: mark(name)) }

    func leaveMark(_ name: String) { #expect(FileManager.default.createFile(atPath: mark(name), contents: nil)) }

    /// Waits for a mark and returns its text.
    func text(of name: String) async throws -> String {
        var text = ""
        try await until("the mark \(name) exists") {
            text = (try? String(contentsOfFile: mark(name), encoding: .utf8)) ?? ""
            return text.hasSuffix("\n")
        }
        return text.trimmingCharacters(in: .newlines)
    }

    struct Inspection: Decodable {
        struct Participant: Decodable {
            var id: String
            var node: String
            var count: Int
            var since: String
            var seconds: Double
            var fence: UInt64?
        }
        var name: String
        var kind: String
        var permits: Int
        var available: Int
        var holders: [Participant]
        var waiters: [Participant]
    }

    func inspect(_ name: String) async throws -> Inspection {
        let output = try await run("inspect", name, "--json").output
        return try JSONDecoder().decode(Inspection.self, from: Data(output.utf8))
    }

    func untilWaiting(_ count: Int, for name: String) async throws {
        try await until("\(count) processes wait for \(name)") { try await inspect(name).waiters.count == count }
    }
}

/// Runs `body` with a tool and a private server.
func withEngineTool(
    _ configuration: LocalRedis.Configuration = .init(), _ body: (EngineTool) async throws -> Void
) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("engine-tool-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await withLocalRedis(configuration) { server in
        try await body(EngineTool(server: server, folder: folder))
    }
}

/// Runs the tool with a server.
func redisdc(_ words: String..., url: String) async throws -> Child.End {
    try await Child("redisdc", words, environment: ["REDIS_URL": url]).end()
}
