import ChildProcesses
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// A program that ends when the process that started it ends.
///
/// The program runs under a small shell that holds the read end of a pipe, the leash. Only this
/// process has the write end. The kernel closes it when this process ends in any way, including
/// `kill -9`. The shell then kills the program with `SIGKILL`, which also ends a stopped program,
/// and removes its folder. Releasing the object closes the write end as well.
///
/// `PR_SET_PDEATHSIG` is no alternative: it is bound to the thread that started the child, and the
/// threads of a pool come and go.
final class LeashedProcess: Sendable {
    /// The process ID of the program, not of the shell.
    let processID: pid_t
    private let leash: CInt
    private let end: OneTimeEvent

    private init(processID: pid_t, leash: CInt, end: OneTimeEvent) {
        self.processID = processID
        self.leash = leash
        self.end = end
    }

    deinit {
        close(self.leash)
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - command: the absolute path of the program, followed by its arguments.
    ///   - log: the path of the file to which the output of the program is appended.
    ///   - folder: the path of the folder to remove when the leash kills the program.
    /// - Throws: ``ChildProcess/Failure`` if the program cannot be started.
    static func start(_ command: [String], log: String, folder: String) async throws -> LeashedProcess {
        let end = OneTimeEvent()
        let (processID, leash) = try await withCheckedThrowingContinuation { continuation in
            // One thread performs the blocking waits for the lifetime of the program.
            Thread.detachNewThread {
                let shell: pid_t
                do {
                    let leash = try ChildPipe()
                    let report = try ChildPipe()
                    shell = try ChildProcess.spawn(
                        ["/bin/sh", "-c", Self.script, "leash", log, folder] + command,
                        descriptors: [1: report.writeEnd, 3: leash.readEnd])
                    report.closeWriteEnd()
                    guard let line = report.readLine(), let processID = pid_t(line) else {
                        ChildProcess.reap(shell)
                        throw ChildProcess.Failure(action: "start \(command[0]) under a shell", code: ECHILD)
                    }
                    continuation.resume(returning: (processID, leash.takeWriteEnd()))
                } catch {
                    continuation.resume(throwing: error)
                    return
                }
                ChildProcess.reap(shell)
                end.arrive()
            }
        }
        return LeashedProcess(processID: processID, leash: leash, end: end)
    }

    /// Whether the program has exited and has been reaped.
    var hasEnded: Bool { self.end.hasArrived }

    /// Waits until the program has exited and has been reaped.
    ///
    /// Cancelling the task does not shorten the wait.
    func ended() async {
        await self.end.wait()
    }

    /// Sends a signal to the program. It has no effect after the program has exited.
    func send(_ signal: CInt) {
        self.end.unlessArrived { _ = kill(self.processID, signal) }
    }

    /// Ends the program with `SIGTERM`, and with `SIGKILL` if it has not exited after a timeout.
    ///
    /// The method returns when the program has exited. Cancelling the task does not shorten the
    /// wait.
    ///
    /// - Returns: whether the program exited before the timeout.
    @discardableResult
    func terminate(killAfter timeout: Duration) async -> Bool {
        // A stopped program handles SIGTERM only after it is resumed.
        self.send(SIGTERM)
        self.send(SIGCONT)
        let isOverdue = OneTimeEvent()
        let timer = MultiThreadedEventLoopGroup.singleton.any().scheduleTask(in: TimeAmount(timeout)) {
            isOverdue.arrive()
            self.send(SIGKILL)
        }
        await self.ended()
        timer.cancel()
        return !isOverdue.hasArrived
    }

    /// The script of the shell. Descriptor 3 is the leash; standard output reports the process ID.
    ///
    /// - The shell waits for the program, so the program never remains a zombie, and exits after
    ///   it.
    /// - The watcher exits with status 0 only if the leash was closed. In that case the shell
    ///   removes the folder, because this process no longer can. The watcher ignores SIGTERM before
    ///   the kill; otherwise the shell could end it between the kill and its exit.
    /// - The last line ends the rest of the process group, such as a child that writes a snapshot.
    /// - SIGHUP is ignored because the kernel sends it to a group with a stopped member that loses
    ///   its parent. It would end the watcher, and a paused program would remain.
    private static let script = """
        trap '' HUP INT
        log=$1
        folder=$2
        shift 2
        "$@" </dev/null >>"$log" 2>&1 3<&- &
        program=$!
        echo "$program"
        (read -r _ <&3; trap '' TERM; kill -9 "$program") >/dev/null &
        watcher=$!
        exec 3<&- >/dev/null
        wait "$program"
        kill -TERM "$watcher"
        wait "$watcher" && rm -rf "$folder"
        kill -9 0
        """
}

/// An event that happens once, and the tasks that wait for it.
private final class OneTimeEvent: Sendable {
    private struct State {
        var hasArrived = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = NIOLockedValueBox(State())

    var hasArrived: Bool { self.state.withLockedValue { $0.hasArrived } }

    func arrive() {
        let waiters = self.state.withLockedValue { state in
            state.hasArrived = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let hasArrived = self.state.withLockedValue { state in
                if !state.hasArrived { state.waiters.append(continuation) }
                return state.hasArrived
            }
            if hasArrived { continuation.resume() }
        }
    }

    /// Runs a body unless the event has happened; the event cannot happen while the body runs.
    func unlessArrived(_ body: () -> Void) {
        self.state.withLockedValue { if !$0.hasArrived { body() } }
    }
}
