import Foundation
import NIOCore
import NIOPosix
import NIOConcurrencyHelpers

/// A program that cannot outlive the process that started it.
///
/// It runs under a small shell that holds the read end of a pipe, the leash. Only this process has the write end, so
/// the kernel closes it however this process ends, `kill -9` included; the shell then kills the program with `SIGKILL`
/// (which a stopped program obeys too) and removes its folder. `PR_SET_PDEATHSIG` would not do: it is bound to the
/// thread that started the child, and threads of a pool come and go. Letting go of the object lets go of the leash.
final class LeashedProcess: Sendable {
    /// The program's own process id, not the shell's.
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
    ///   - command: an absolute path and its arguments.
    ///   - log: the file that what it prints is appended to.
    ///   - folder: what to remove if the leash has to kill it.
    static func start(_ command: [String], log: String, folder: String) async throws -> LeashedProcess {
        let end = OneTimeEvent()
        let (processID, leash) = try await withCheckedThrowingContinuation { continuation in
            // One thread lives as long as the program does, and does all the waiting that blocks.
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

    /// Whether the program has ended and been reaped.
    var hasEnded: Bool { self.end.hasArrived }

    /// Waits until the program has ended and been reaped. Cancelling the task does not shorten the wait.
    func ended() async {
        await self.end.wait()
    }

    /// Sends a signal to the program, or does nothing once it has ended.
    func send(_ signal: CInt) {
        self.end.unlessArrived { _ = kill(self.processID, signal) }
    }

    /// Asks the program to end with `SIGTERM`, kills it if it has not ended in time, and waits until it has.
    ///
    /// - Returns: whether it ended by itself.
    @discardableResult
    func terminate(killAfter timeout: Duration) async -> Bool {
        // A stopped program takes SIGTERM only when it goes on.
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

    /// What the shell does; its descriptor 3 is the leash, and on its standard output it reports the process id.
    ///
    /// - The shell is the one that waits for the program, so the program is never a zombie, and ends when it does.
    /// - The watcher ends with status 0 only when the leash is cut: then nobody is left to remove the folder. It stops
    ///   listening to SIGTERM first, or the shell could end it between the kill and its own end.
    /// - The last line ends whatever else is in the group, such as a child that was writing a snapshot.
    /// - SIGHUP is ignored because the kernel sends it to a group with a stopped member that loses its parent: the
    ///   watcher would die of it and leave a paused program behind.
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

/// Something that happens once and can be waited for.
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
        waiters.forEach { $0.resume() }
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

    /// Runs the body before the event can be marked, or not at all.
    func unlessArrived(_ body: () -> Void) {
        self.state.withLockedValue { if !$0.hasArrived { body() } }
    }
}
