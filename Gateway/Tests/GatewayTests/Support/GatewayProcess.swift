import Foundation
import NIOConcurrencyHelpers
import RedisDCTesting
import Testing

/// A gateway as a process of its own, which can be killed. It is killed when the object is released.
final class GatewayProcess: Sendable {
    private let process: NIOLockedValueBox<Process>
    private let lines: NIOLockedValueBox<[String]>
    let processID: Int32

    /// Starts the program, without waiting for it.
    init(_ arguments: [String], environment: [String: String] = [:], program: String = "redisdc-gateway") throws {
        let program = Bundle.main.executableURL!.deletingLastPathComponent().appendingPathComponent(program)
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        let lines = NIOLockedValueBox<[String]>([])
        let rest = NIOLockedValueBox(Data())
        output.fileHandleForReading.readabilityHandler = { file in
            let data = file.availableData
            if data.isEmpty { file.readabilityHandler = nil }
            let text = rest.withLockedValue { rest in
                rest += data
                guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { return "" }
                defer { rest = Data(rest[(end + 1)...]) }
                return String(decoding: rest[...end], as: UTF8.self)
            }
            lines.withLockedValue { $0 += text.split(separator: "\n").map(String.init) }
        }
        try process.run()
        processID = process.processIdentifier
        self.process = NIOLockedValueBox(process)
        self.lines = lines
    }

    /// Starts a node that accepts every login on a free port of 127.0.0.1.
    static func node(_ server: LocalRedis, _ more: [String] = []) throws -> GatewayProcess {
        try GatewayProcess(
            [
                "--redis-url", server.url, "--port", "0", "--operations-port", "0", "--insecure-anonymous", "true",
                "--allow-sends", "all", "--max-connections-of-address", "0",
            ] + (more.contains("--log-level") ? [] : ["--log-level", "error"]) + more)
    }

    deinit { kill9() }

    /// The program's output so far.
    var output: String { lines.withLockedValue { $0.joined(separator: "\n") } }

    /// Waits until the program serves, and returns its URL.
    func url(_ word: String = "serving") async throws -> String {
        var url: String?
        try await until("the gateway serves") {
            url = lines.withLockedValue { lines in
                lines.first { $0.hasPrefix(word + " ") }.map { String($0.dropFirst(word.count + 1)) }
            }
            guard isRunning || url != nil else { throw Ended(output: output) }
            return url != nil
        }
        return url ?? ""
    }

    struct Ended: Error { var output: String }

    var isRunning: Bool { process.withLockedValue { $0.isRunning } }

    /// The exit status of a process that has ended.
    var status: Int32 { process.withLockedValue { $0.terminationStatus } }

    func kill9() { if isRunning { kill(processID, SIGKILL) } }

    func terminate() { kill(processID, SIGTERM) }
}
