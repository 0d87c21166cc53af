// A Redis server whose instructions are counted.
import Foundation
import RedisDCTesting

/// Runs a private redis-server under `valgrind --tool=callgrind` and returns the instructions that it executed.
///
/// The same commands cost the same number of instructions, whatever else the machine does. The remaining randomness,
/// from the seeds of Redis's hash tables and from its timer, is below a per mille of the numbers measured here.
enum CountedServer {
    /// Whether this machine has valgrind.
    static var isAvailable: Bool {
        (try? Program.output(nil, "sh", ["-c", "command -v valgrind"]))?.isEmpty == false
    }

    /// Returns the server's instructions from its start to its end, with `body` in between.
    static func instructions(_ body: (LocalRedis) async throws -> Void) async throws -> Int {
        try await totals(options: "", body).max() ?? 0
    }

    /// Returns the instructions of the longest script that the server executes for `body`.
    static func longestScript(_ body: (LocalRedis) async throws -> Void) async throws -> Int {
        // Callgrind writes a total each time the server's function for EVALSHA returns.
        let function = "evalShaCommand"
        let options = "--collect-atstart=no --toggle-collect=\(function) --dump-after=\(function)"
        let longest = try await totals(options: options, body).max() ?? 0
        guard longest > 0 else { throw BenchError("callgrind has counted no script") }
        return longest
    }

    private static func totals(options: String, _ body: (LocalRedis) async throws -> Void) async throws -> [Int] {
        try await totals(options: options) { program in
            let server = try await LocalRedis.start(.init(binary: program, extra: settings))
            do {
                try await body(server)
                try await server.shutdown()
            } catch {
                await server.stop()
                throw error
            }
            await server.stop()
        }
    }

    /// The server's timer follows real time, and valgrind makes the server slow: it fires as seldom as possible.
    static let settings = ["hz 1", "dynamic-hz no"]

    /// Runs a body with a program that counts the instructions of a server, and returns the totals that callgrind has
    /// written.
    static func totals(options: String, _ body: (_ program: String) async throws -> Void) async throws -> [Int] {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "rdc-cost-\(UInt32.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let counts = folder.appendingPathComponent("callgrind.out")
        let wrapper = folder.appendingPathComponent("redis-server")
        // A script, because a server is started by the name of one program.
        try """
        #!/bin/sh
        exec valgrind --tool=callgrind --callgrind-out-file=\(counts.path).%p --log-file=\(folder.path)/valgrind.%p.log \
        \(options) \
        redis-server "$@"
        """.write(to: wrapper, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: wrapper.path)
        try await body(wrapper.path)
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        return try files.filter { $0.lastPathComponent.hasPrefix(counts.lastPathComponent) }.map(total)
    }

    /// Returns the instructions of one operation: the difference between a long run and a short one, divided by the
    /// difference of their lengths. Both contain the cost of starting, joining and connecting.
    ///
    /// - Parameter run: carries out the given number of operations and returns the actual number.
    static func perOperation(
        _ count: Int, _ run: @Sendable @escaping (LocalRedis, Int) async throws -> Int
    ) async throws -> Double {
        // At the same time, because what other processes do changes no count.
        async let short = counted(count, run)
        async let long = counted(2 * count, run)
        let (few, many) = try await (short, long)
        return Double(many.instructions - few.instructions) / Double(many.operations - few.operations)
    }

    private static func counted(
        _ count: Int, _ run: @Sendable (LocalRedis, Int) async throws -> Int
    ) async throws -> (instructions: Int, operations: Int) {
        var operations = 0
        let total = try await instructions { operations = try await run($0, count) }
        return (total, operations)
    }

    private static func total(_ counts: URL) throws -> Int {
        let text = try String(contentsOf: counts, encoding: .utf8)
        for line in text.split(separator: "\n") where line.hasPrefix("totals:") || line.hasPrefix("summary:") {
            if let number = line.split(separator: " ").last.flatMap({ Int($0) }) { return number }
        }
        throw BenchError("callgrind has written no total")
    }
}
