// A child process that shares this process's standard streams and receives its signals.
import ChildProcesses
import CommandLineTool
import Dispatch
import Foundation
import RedisDC
import Synchronization

/// A program that is run once as a child process.
///
/// It gets a process group of its own, so that a signal also reaches the processes that it has
/// started. If this process is in the foreground of a terminal, the child shares its process group
/// instead: only the foreground group may read from the terminal, and the terminal sends Ctrl-C to
/// both.
final class ChildProgram: Sendable {
    private struct State {
        var processID: pid_t?
        var ownsGroup = false
        var hasEnded = false
        /// A signal has arrived before the start.
        var isCancelled = false
        var termination: Task<Void, Never>?
        var leaseGuard: LeaseGuard?
    }

    private let command: [[UInt8]]
    private let state = Mutex(State())

    /// - Parameter command: the program, as a path or a name on the PATH, and its arguments.
    /// - Throws: a ``Failure`` if the program does not exist, or is not executable.
    init(_ command: [ByteArgument]) throws {
        self.command = try [ProgramPath.find(command[0].bytes)] + command.dropFirst().map(\.bytes)
    }

    // MARK: Life

    /// Starts the program with this process's environment and standard streams, and some more variables.
    ///
    /// - Parameters:
    ///   - variables: `REDISDC_FENCE` and others.
    ///   - streams: descriptors that replace standard streams, by the number of the stream. A program without the
    ///     terminal as its input has a process group of its own.
    ///   - leaseGuard: ends the program when this process cannot.
    /// - Throws: a ``Failure``, or `.cancelled` if the task was cancelled or a signal arrived
    ///   before.
    func start(variables: [String: String], streams: [CInt: CInt] = [:], leaseGuard: LeaseGuard) throws {
        // If SIGCHLD is ignored, the kernel discards the exit statuses of children.
        signal(SIGCHLD, SIG_DFL)
        let ownsGroup = streams[0] != nil || !Self.isInForeground
        try state.withLock { state in
            if state.isCancelled || Task.isCancelled { throw RedisDCError(.cancelled, "interrupted") }
            do {
                let processID = try leaseGuard.start(ownsGroup: ownsGroup) { variable in
                    try ChildProcess.spawn(
                        command, descriptors: [0: 0, 1: 1, 2: 2].merging(streams) { $1 },
                        variables: ProcessEnvironment.variables(with: variables) + [variable],
                        sharesGroup: !ownsGroup, resetting: [SIGINT, SIGTERM, SIGPIPE])
                }
                (state.processID, state.leaseGuard) = (processID, leaseGuard)
            } catch let error as ChildProcess.Failure {
                throw Failure(.cannotRun, error.description)
            }
            state.ownsGroup = ownsGroup
        }
    }

    /// Waits until the program has ended, even if the task is cancelled.
    ///
    /// - Returns: its exit status, or 128 plus the number of the signal that ended it.
    func end() async -> Int32 {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in continuation.resume(returning: reap()) }
        }
    }

    private func reap() -> Int32 {
        guard let processID = state.withLock({ $0.processID }) else { return 0 }
        var info = siginfo_t()
        while waitid(P_PID, id_t(processID), &info, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        // The kernel may reuse the process id once it is reaped. Under the lock no signal can be sent to the new owner.
        return state.withLock { state in
            state.hasEnded = true
            state.leaseGuard?.end(processID, ownsGroup: state.ownsGroup)
            var status: Int32 = 0
            while waitpid(processID, &status, 0) < 0, errno == EINTR {}
            return shellStatus(status)
        }
    }

    /// Terminates the program and the processes that it has started: SIGTERM first, SIGKILL after
    /// `grace`. A second call has no effect.
    ///
    /// - Returns: a task that ends when no process of the group is left.
    @discardableResult
    func terminate(grace: Duration) -> Task<Void, Never> {
        state.withLock { state in
            if let termination = state.termination { return termination }
            let termination = Task { [self] in
                sendToAll(SIGTERM)
                // A stopped process handles SIGTERM only after SIGCONT.
                sendToAll(SIGCONT)
                let end = ContinuousClock.now + grace
                while sendToAll(0), ContinuousClock.now < end { try? await Task.sleep(for: .milliseconds(20)) }
                sendToAll(SIGKILL)
            }
            state.termination = termination
            return termination
        }
    }

    // MARK: Signals

    /// Sends a signal to the process group, or to the program alone if it shares this process's
    /// group.
    ///
    /// The kernel does not reuse a group's id while the group has a member.
    ///
    /// - Returns: whether a process is left. One that has ended and is not yet reaped counts.
    @discardableResult
    private func sendToAll(_ signal: Int32) -> Bool {
        state.withLock { state in
            guard let processID = state.processID, state.ownsGroup || !state.hasEnded else { return false }
            return kill(state.ownsGroup ? -processID : processID, signal) == 0
        }
    }

    /// Forwards SIGINT and SIGTERM to the program. Call this before the start, and cancel the
    /// sources when the program has ended.
    ///
    /// `runTool` handles the same signals and has set their disposition. Setting it again would
    /// disable both handlers.
    func passOnSignals() -> [any DispatchSourceSignal] {
        [SIGINT, SIGTERM].map { number in
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { @Sendable in self.passOn(number) }
            source.activate()
            return source
        }
    }

    private func passOn(_ number: Int32) {
        state.withLock { state in
            guard let processID = state.processID else {
                state.isCancelled = true
                return
            }
            // The terminal has sent its Ctrl-C to the program already.
            if state.hasEnded || number == SIGINT && !state.ownsGroup && Self.isInForeground { return }
            kill(state.ownsGroup ? -processID : processID, number)
        }
    }

    // MARK: The terminal

    /// Whether this process is in the foreground group of a terminal.
    private static var isInForeground: Bool {
        let terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard terminal >= 0 else { return false }
        defer { close(terminal) }
        return tcgetpgrp(terminal) == getpgrp()
    }
}
