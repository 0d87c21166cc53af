import Foundation
import Synchronization
import TestRandom
import Testing

/// A child process.
///
/// A child that is still running when the object is released is killed.
public final class Child: Sendable {
    private let process = Mutex<Process?>(nil)
    private let output: FileHandle
    private let errors: FileHandle
    /// The process ID.
    public let processID: Int32

    /// Starts a program with this process's environment and additional variables.
    ///
    /// - Parameters:
    ///   - name: the name of a program of this package or on the `PATH`.
    ///   - arguments: the arguments of the program.
    ///   - environment: variables that are added to the environment, or replace its variables.
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

    /// Waits until the process has exited, and returns its standard output.
    ///
    /// Records an issue, with the process's standard error, if the exit status is not 0.
    public func result() async throws -> String {
        let ended = try await end()
        #expect(ended.status == 0, "\(ended.error)")
        return ended.output
    }

    /// The result of a process that has exited.
    public struct End: Sendable {
        /// The exit status.
        public var status: Int32
        /// The standard output, without leading and trailing white space.
        public var output: String
        /// The standard error, without leading and trailing white space.
        public var error: String
    }

    /// Waits until the process has exited, for at most 300 seconds, and returns its result.
    public func end() async throws -> End {
        try await until("process \(processID) exits", within: .seconds(300)) { !isRunning }
        return End(
            status: process.withLock { $0?.terminationStatus } ?? -1, output: Self.text(output),
            error: Self.text(errors))
    }

    private static func text(_ file: FileHandle) -> String {
        String(decoding: file.readDataToEndOfFile(), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Sends `SIGINT` to the process.
    public func interrupt() { kill(processID, SIGINT) }

    /// Whether the process is running.
    public var isRunning: Bool { process.withLock { $0?.isRunning == true } }

    /// Sends `SIGKILL` to the process and waits until it has exited.
    public func kill9() async throws {
        tally(.fault)
        kill(processID, SIGKILL)
        try await until("the killed process \(processID) exits") { !isRunning }
    }

    deinit { if isRunning { kill(processID, SIGKILL) } }
}
