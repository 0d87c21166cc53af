import ChildProcesses
import Foundation
import Synchronization
import TestRandom
import Testing

/// A child process.
///
/// A child that is still running when the object is released is killed.
public final class Child: Sendable {
    private let exit = Exit()
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
        let program = FileManager.default.isExecutableFile(atPath: built.path) ? [built.path] : ["/usr/bin/env", name]
        let (output, errors) = (Pipe(), Pipe())
        // Not by Foundation's `Process`, which has crashed when many were started at the same time.
        processID = try ChildProcess.spawn(
            program + arguments,
            descriptors: [
                1: output.fileHandleForWriting.fileDescriptor, 2: errors.fileHandleForWriting.fileDescriptor,
            ],
            environment: ProcessInfo.processInfo.environment.merging(environment) { $1 })
        // Otherwise reading would not end with the process.
        try output.fileHandleForWriting.close()
        try errors.fileHandleForWriting.close()
        self.output = output.fileHandleForReading
        self.errors = errors.fileHandleForReading
        Thread.detachNewThread { [exit, processID] in exit.wait(for: processID) }
    }

    /// The end of a process. The thread that waits for it must not keep the ``Child``.
    private final class Exit: Sendable {
        /// The exit status, or the number of the signal that has ended the process; `nil` while it runs.
        let status = Mutex<Int32?>(nil)

        func wait(for process: pid_t) {
            var state: CInt = 0
            while waitpid(process, &state, 0) < 0, errno == EINTR {}
            let signal = state & 0x7f
            status.withLock { $0 = signal == 0 ? (state >> 8) & 0xff : signal }
        }
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
            status: exit.status.withLock { $0 } ?? -1, output: Self.text(output),
            error: Self.text(errors))
    }

    private static func text(_ file: FileHandle) -> String {
        String(decoding: file.readDataToEndOfFile(), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Sends `SIGINT` to the process.
    public func interrupt() { kill(processID, SIGINT) }

    /// Whether the process is running.
    public var isRunning: Bool { exit.status.withLock { $0 == nil } }

    /// Sends `SIGKILL` to the process and waits until it has exited.
    public func kill9() async throws {
        tally(.fault)
        kill(processID, SIGKILL)
        try await until("the killed process \(processID) exits") { !isRunning }
    }

    deinit { if isRunning { kill(processID, SIGKILL) } }
}
