import Foundation
import Synchronization
import Testing

/// A program as a process of its own.
public final class Child: Sendable {
    private let process = Mutex<Process?>(nil)
    private let output: FileHandle
    private let errors: FileHandle
    public let processID: Int32

    /// - Parameter name: a program of this package, or one on the PATH.
    public init(_ name: String, _ arguments: [String], environment: [String: String] = [:]) throws {
        let built = Bundle.main.executableURL!.deletingLastPathComponent().appendingPathComponent(name)
        let process = Process()
        if FileManager.default.isExecutableFile(atPath: built.path) {
            process.executableURL = built
            process.arguments = arguments
        } else {
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = [name] + arguments
        }
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let pipe = Pipe()
        process.standardOutput = pipe
        let errorPipe = Pipe()
        process.standardError = errorPipe
        process.standardInput = FileHandle.nullDevice
        try process.run()
        output = pipe.fileHandleForReading
        errors = errorPipe.fileHandleForReading
        processID = process.processIdentifier
        self.process.withLock { $0 = process }
    }

    /// Waits for its end; its output, if it ended well.
    public func result() async throws -> String {
        let ended = try await end()
        #expect(ended.status == 0, "\(ended.error)")
        return ended.output
    }

    public struct End: Sendable {
        public var status: Int32
        public var output: String
        public var error: String
    }

    public func end() async throws -> End {
        try await until("the process \(processID) ends", within: .seconds(300)) { !isRunning }
        return End(
            status: process.withLock { $0?.terminationStatus } ?? -1, output: Self.text(output),
            error: Self.text(errors))
    }

    private static func text(_ file: FileHandle) -> String {
        String(decoding: file.readDataToEndOfFile(), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    public func interrupt() { kill(processID, SIGINT) }

    public var isRunning: Bool { process.withLock { $0?.isRunning == true } }

    public func kill9() async throws {
        kill(processID, SIGKILL)
        try await until("the killed process ends") { !isRunning }
    }

    deinit { if isRunning { kill(processID, SIGKILL) } }
}
