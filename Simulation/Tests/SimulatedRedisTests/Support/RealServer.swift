// A real server for comparisons: a process with a Unix socket in a folder of its own.

import Foundation
import SimulatedRedis

/// A server process. It is ended with `stop`, and with the process of the tests, even if that is killed.
final class RealServer {
    /// Runs a program until its input ends. The program may have inherited that it ignores SIGTERM.
    private static let leash = #""$@" </dev/null >/dev/null 2>&1 & read -r _; kill -KILL $!"#

    private let shell = Process()
    private let input = Pipe()
    private let folder: URL
    private let socket: String
    let connection: Connection

    /// The program of the server: that of `REDISDC_TEST_SERVER`, or the installed one.
    static var program: String {
        let chosen = ProcessInfo.processInfo.environment["REDISDC_TEST_SERVER"] ?? ""
        if !chosen.isEmpty { return chosen }
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        return folders.map { "\($0)/redis-server" }.first { FileManager.default.isExecutableFile(atPath: $0) }
            ?? "/usr/bin/redis-server"
    }

    init(_ options: [String] = []) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "sim-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        socket = folder.appending(path: "s").path
        shell.executableURL = URL(filePath: "/bin/sh")
        shell.arguments =
            ["-c", Self.leash, "sh", Self.program, "--port", "0", "--unixsocket", socket, "--dir", folder.path]
            + ["--save", "", "--appendonly", "no"] + options
        shell.standardInput = input
        try shell.run()
        do {
            connection = try Self.connect(to: socket)
        } catch {
            try? input.fileHandleForWriting.close()
            throw error
        }
    }

    /// Waits until the server accepts connections.
    private static func connect(to socket: String) throws -> Connection {
        for _ in 0..<500 {
            if let connection = try? Connection(to: socket), (try? connection.send(["PING"])) == .status("PONG") {
                return connection
            }
            Thread.sleep(forTimeInterval: 0.02)
        }
        throw ConnectionFailure(reason: "\(program) does not accept connections")
    }

    /// Another connection.
    func connect() throws -> Connection { try Connection(to: socket) }

    func stop() {
        try? input.fileHandleForWriting.close()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Calls a function with a server that is ended afterwards.
    static func with<Result>(_ options: [String] = [], _ body: (RealServer) throws -> Result) throws -> Result {
        let server = try RealServer(options)
        defer { server.stop() }
        return try body(server)
    }

    /// The number of clients that wait.
    func waitingClients() throws -> Int? {
        let lines = try connection.send(["INFO", "clients"]).bytes?.text.split(whereSeparator: \.isNewline) ?? []
        return lines.first { $0.hasPrefix("blocked_clients:") }.flatMap { Int($0.dropFirst("blocked_clients:".count)) }
    }

    /// The time by the server's clock, in microseconds.
    func time() throws -> Int64 {
        let parts = try connection.send(["TIME"]).elements ?? []
        let numbers = parts.compactMap { $0.bytes.flatMap { Int64($0.text) } }
        return numbers[0] * 1_000_000 + numbers[1]
    }
}
