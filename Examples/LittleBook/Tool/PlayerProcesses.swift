// The player processes of a run, each a `littlebook player`.
import ChildProcesses
import CommandLineTool
import Foundation

/// Starts, kills and reaps the player processes of a run.
///
/// No player outlives this object or this process: each one ends when its standard input, a pipe
/// that this object owns, is closed.
final class PlayerProcesses {
    enum State: Equatable {
        case running(pid_t)
        /// The exit status, or 128 plus the number of a signal.
        case ended(Int32)
    }

    let players: [String]
    private let arguments: (_ player: String, _ life: Int) -> [String]
    private let environment: [String: String]
    private let leash = Pipe()
    private(set) var states: [String: State] = [:]
    private(set) var lives: [String: Int] = [:]

    /// - Parameter arguments: returns the arguments of a player's process; `life` is 1, plus 1 for
    ///   each restart.
    init(
        _ players: [String], environment: [String: String],
        arguments: @escaping (_ player: String, _ life: Int) -> [String]
    ) {
        (self.players, self.environment, self.arguments) = (players, environment, arguments)
        // If SIGCHLD is ignored, the kernel discards the exit statuses of children.
        signal(SIGCHLD, SIG_DFL)
    }

    deinit { killAll() }

    func startAll() throws { try players.forEach(start) }

    /// Starts a player, or restarts it after its death.
    func start(_ player: String) throws {
        let tool = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        let life = lives[player, default: 0] + 1
        let processID = try ChildProcess.spawn(
            [(Bundle.main.executableURL ?? tool).path] + arguments(player, life),
            descriptors: [0: leash.fileHandleForReading.fileDescriptor, 2: 2],
            environment: ProcessInfo.processInfo.environment.merging(environment) { $1 })
        states[player] = .running(processID)
        lives[player] = life
    }

    /// Reaps the processes that have ended.
    func reapEnded() {
        for player in players {
            guard case .running(let processID) = states[player] else { continue }
            var status: Int32 = 0
            guard waitpid(processID, &status, WNOHANG) == processID else { continue }
            states[player] = .ended(shellStatus(status))
        }
    }

    /// Kills a player with SIGKILL and returns when it is certainly dead.
    ///
    /// - Returns: `false` if it had ended before.
    func kill9(_ player: String) -> Bool {
        reapEnded()
        guard case .running(let processID) = states[player] else { return false }
        kill(processID, SIGKILL)
        var status: Int32 = 0
        while waitpid(processID, &status, 0) < 0, errno == EINTR {}
        states[player] = .ended(shellStatus(status))
        return states[player] == .ended(128 + SIGKILL)
    }

    func killAll() { for player in players { _ = kill9(player) } }

    func isRunning(_ player: String) -> Bool { if case .running = states[player] { true } else { false } }

    /// The first player whose process has ended with a status other than 0.
    var failed: (player: String, status: Int32)? {
        for player in players {
            if case .ended(let status) = states[player], status != 0 { return (player, status) }
        }
        return nil
    }
}
