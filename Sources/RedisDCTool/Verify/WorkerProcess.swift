// The processes that `redisdc verify` starts.
import ChildProcesses
import CommandLineTool
import Foundation
import Synchronization

/// One running `redisdc verify-worker`. It ends when this process does, because its standard input ends then.
final class WorkerProcess: Sendable {
    /// The number of the process, unique in the run.
    let number: Int
    /// The place of the process among those that run at the same time.
    let slot: Int
    private static let backtrace = "SWIFT_BACKTRACE"
    private let processID: pid_t
    private let input: FileHandle
    private let status = Mutex<Int32?>(nil)

    /// Starts a process.
    ///
    /// - Parameters:
    ///   - rival: the words of another program's command, instead of `redisdc verify-worker`.
    ///   - arguments: those of the command, without the number and the slot.
    ///   - environment: variables to add to this process's own.
    /// - Throws: `ChildProcess.Failure`.
    init(number: Int, slot: Int, rival: [String]?, _ arguments: [String], environment: [String: String]) throws {
        (self.number, self.slot) = (number, slot)
        // If SIGCHLD is ignored, the kernel discards the exit statuses of children.
        signal(SIGCHLD, SIG_DFL)
        // A process that has died closes its end of the pipe.
        signal(SIGPIPE, SIG_IGN)
        let itself = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        let pipe = Pipe()
        // A process that has crashed must end immediately: while it writes its backtrace, it could be taken for one that
        // runs, and be killed.
        var variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        if variables[Self.backtrace] == nil { variables[Self.backtrace] = "enable=no" }
        processID = try ChildProcess.spawn(
            (rival.map { ["/usr/bin/env"] + $0 } ?? [itself.path, "verify-worker"])
                + ["--process", "\(number)", "--slot", "\(slot)"] + arguments,
            descriptors: [0: pipe.fileHandleForReading.fileDescriptor, 2: STDERR_FILENO],
            environment: variables)
        try? pipe.fileHandleForReading.close()
        input = pipe.fileHandleForWriting
        Thread.detachNewThread { [self] in reap() }
    }

    private func reap() {
        var info = siginfo_t()
        while waitid(P_PID, id_t(processID), &info, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        // The kernel may reuse the process id once it is reaped. Under the lock no signal can be sent to the new owner.
        status.withLock { status in
            var raw: Int32 = 0
            while waitpid(processID, &raw, 0) < 0, errno == EINTR {}
            status = raw
        }
    }

    var hasEnded: Bool { status.withLock { $0 != nil } }

    /// The error if the process has ended, neither as it was asked to nor by SIGKILL.
    var failure: Failure? {
        guard let status = status.withLock({ $0 }) else { return nil }
        let (signal, code) = (status & 0x7f, status >> 8 & 0xff)
        let text: String
        switch signal {
        case 0 where code == 0: return nil
        case 0: text = "process \(number) of the run has ended with exit code \(code)"
        case SIGKILL: return nil
        default:
            text =
                "process \(number) of the run has crashed with signal \(signal): "
                + "run it again with \(Self.backtrace)=enable=yes to see where"
        }
        return Failure(.software, text)
    }

    /// Asks the process to end after its current operations.
    func stop() { try? input.write(contentsOf: Data("stop\n".utf8)) }

    /// Kills the process with SIGKILL, and waits until it has exited.
    func kill9() async {
        status.withLock { if $0 == nil { _ = kill(processID, SIGKILL) } }
        while !hasEnded { try? await Task.sleep(for: .milliseconds(2)) }
        try? input.close()
    }
}

/// The processes of a run: one for each slot, replaced when it is killed.
actor WorkerProcesses {
    private let rival: [String]?
    private let arguments: [String]
    private let environment: [String: String]
    private var running: [WorkerProcess] = []
    private var started = 0

    init(rival: [String]?, _ arguments: [String], environment: [String: String]) {
        (self.rival, self.arguments, self.environment) = (rival, arguments, environment)
    }

    /// Starts a process in a slot.
    ///
    /// - Throws: `ChildProcess.Failure`.
    func start(slot: Int) throws {
        started += 1
        running.append(
            try WorkerProcess(number: started, slot: slot, rival: rival, arguments, environment: environment))
    }

    /// The error if a process has ended although nobody has asked it to.
    var failure: Failure? {
        running.first { $0.hasEnded }.map {
            $0.failure ?? Failure(.software, "process \($0.number) of the run has ended by itself")
        }
    }

    /// Kills a process and starts another one in its place.
    ///
    /// - Parameter recording: records the death of the process with this number, before the signal.
    /// - Throws: a ``Failure`` if the process had crashed before; `ChildProcess.Failure`.
    func replace(at place: Int, recording: (Int) -> Void) async throws {
        guard running.indices.contains(place) else { return }
        let old = running.remove(at: place)
        recording(old.number)
        await old.kill9()
        if let failure = old.failure { throw failure }
        try start(slot: old.slot)
    }

    /// Asks all processes to end, and kills those that have not ended in time.
    ///
    /// - Parameter recording: records the death of a process that has to be killed.
    /// - Returns: the error if one has not ended as it was asked to, and was not killed.
    func stopAll(within limit: Duration, recording: (Int) -> Void) async -> Failure? {
        for process in running { process.stop() }
        let end = ContinuousClock.now + limit
        while running.contains(where: { !$0.hasEnded }), ContinuousClock.now < end {
            try? await Task.sleep(for: .milliseconds(20))
        }
        for process in running where !process.hasEnded {
            recording(process.number)
            await process.kill9()
        }
        defer { running = [] }
        return running.lazy.compactMap(\.failure).first
    }

    /// Kills all processes.
    func killAll() async {
        for process in running { await process.kill9() }
        running = []
    }
}
