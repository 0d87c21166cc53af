// A program that runs beside this one with its input and output, and gets its signals.
import Dispatch
import Foundation
import RedisDC
import RedisDCTesting
import Synchronization

/// A program to be run once.
///
/// It gets a process group of its own, so that a signal reaches what it has started too. In the foreground of a terminal it
/// shares ours instead: there the terminal's keys reach both, and only the foreground may read from the terminal.
final class ChildProgram: Sendable {
    private struct State {
        var processID: pid_t?
        var ownsGroup = false
        var hasEnded = false
        /// Told to end before it has begun.
        var isUnwanted = false
        var termination: Task<Void, Never>?
    }

    private let command: [String]
    private let state = Mutex(State())

    /// - Throws: a ``Failure`` when there is no such program.
    init(_ command: [String]) throws {
        guard let path = Executable.find([command[0]]) else {
            throw Failure(.noProgram, "there is no program \"\(command[0])\"")
        }
        self.command = [path] + command.dropFirst()
    }

    // MARK: Life

    /// - Throws: a ``Failure``, or `.cancelled` when it has been told to end before.
    func start(environment: [String: String]) throws {
        // An ignored one would let its status vanish.
        signal(SIGCHLD, SIG_DFL)
        let ownsGroup = !Self.isInForeground
        try state.withLock { state in
            if state.isUnwanted || Task.isCancelled { throw RedisDCError(.cancelled, "interrupted") }
            do {
                state.processID = try ChildProcess.spawn(
                    command, descriptors: Self.standardStreams,
                    environment: ProcessInfo.processInfo.environment.merging(environment) { $1 },
                    sharesGroup: !ownsGroup, resetting: [SIGINT, SIGTERM, SIGPIPE])
            } catch let error as ChildProcess.Failure {
                throw Failure(.cannotRun, error.description)
            }
            state.ownsGroup = ownsGroup
        }
    }

    /// Waits for its end, whether the task is cancelled or not.
    ///
    /// - Returns: its status, or 128 and the number of the signal that ended it.
    func end() async -> Int32 {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in continuation.resume(returning: reap()) }
        }
    }

    private func reap() -> Int32 {
        guard let processID = state.withLock({ $0.processID }) else { return 0 }
        var info = siginfo_t()
        while waitid(P_PID, id_t(processID), &info, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        // Its number may be another's as soon as it is reaped: no signal may come in between.
        return state.withLock { state in
            state.hasEnded = true
            var status: Int32 = 0
            while waitpid(processID, &status, 0) < 0, errno == EINTR {}
            return status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f
        }
    }

    /// Asks it and what it has started to end, and kills what is left after `grace`. A second call changes nothing.
    ///
    /// - Returns: the task at whose end nothing is left.
    @discardableResult
    func terminate(grace: Duration) -> Task<Void, Never> {
        state.withLock { state in
            if let termination = state.termination { return termination }
            let termination = Task { [self] in
                sendToAll(SIGTERM)
                // A stopped one takes it only when it goes on.
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

    /// - Returns: whether anyone is left; who has ended and not been reaped counts. The group's number is nobody else's as
    ///   long as a member lives.
    @discardableResult
    private func sendToAll(_ signal: Int32) -> Bool {
        state.withLock { state in
            guard let processID = state.processID, state.ownsGroup || !state.hasEnded else { return false }
            return kill(state.ownsGroup ? -processID : processID, signal) == 0
        }
    }

    /// Passes SIGINT and SIGTERM on to it. To be called before it starts, and cancelled when it has ended.
    ///
    /// ``Tool`` listens to the same and has set their action: setting it again would take the signals from both.
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
                state.isUnwanted = true
                return
            }
            // The terminal's Ctrl-C has reached it already.
            if state.hasEnded || number == SIGINT && !state.ownsGroup && Self.isInForeground { return }
            kill(state.ownsGroup ? -processID : processID, number)
        }
    }

    // MARK: What it has from us

    /// Those of 0, 1 and 2 that are open.
    private static var standardStreams: [CInt: CInt] {
        Dictionary(uniqueKeysWithValues: (0...2).filter { fcntl($0, F_GETFD) >= 0 }.map { ($0, $0) })
    }

    /// Whether the keys of a terminal reach this program.
    private static var isInForeground: Bool {
        let terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard terminal >= 0 else { return false }
        defer { close(terminal) }
        return tcgetpgrp(terminal) == getpgrp()
    }
}
