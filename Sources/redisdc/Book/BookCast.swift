// The processes of a run, each a `redisdc book-player`.
import Foundation
import LittleBook
import RedisDCTesting

/// Starts, kills and reaps the players. None outlives this object, nor this process.
final class BookCast {
    enum State: Equatable {
        case playing(pid_t)
        /// It went home, or failed with a status.
        case ended(Int32)
    }

    let players: [String]
    private let arguments: (_ player: String, _ life: Int) -> [String]
    private let environment: [String: String]
    private let leash = Pipe()
    private(set) var states: [String: State] = [:]
    private(set) var lives: [String: Int] = [:]

    init(
        _ players: [String], environment: [String: String],
        arguments: @escaping (_ player: String, _ life: Int) -> [String]
    ) {
        (self.players, self.environment, self.arguments) = (players, environment, arguments)
        // An ignored one would let their statuses vanish.
        signal(SIGCHLD, SIG_DFL)
    }

    deinit { killAll() }

    func startAll() throws { try players.forEach(start) }

    /// Starts a player, for another life if it has died.
    func start(_ player: String) throws {
        let tool = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        let life = lives[player, default: 0] + 1
        let processID = try ChildProcess.spawn(
            [(Bundle.main.executableURL ?? tool).path] + arguments(player, life),
            descriptors: [0: leash.fileHandleForReading.fileDescriptor, 2: 2],
            environment: ProcessInfo.processInfo.environment.merging(environment) { $1 })
        states[player] = .playing(processID)
        lives[player] = life
    }

    /// Finds out who has ended.
    func look() {
        for player in players {
            guard case .playing(let processID) = states[player] else { continue }
            var status: Int32 = 0
            guard waitpid(processID, &status, WNOHANG) == processID else { continue }
            states[player] = .ended(status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f)
        }
    }

    /// Returns when it is certainly dead; false if it had ended before.
    func kill9(_ player: String) -> Bool {
        look()
        guard case .playing(let processID) = states[player] else { return false }
        kill(processID, SIGKILL)
        var status: Int32 = 0
        while waitpid(processID, &status, 0) < 0, errno == EINTR {}
        states[player] = .ended(status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f)
        return states[player] == .ended(128 + SIGKILL)
    }

    func killAll() { players.forEach { _ = kill9($0) } }

    func isPlaying(_ player: String) -> Bool { if case .playing = states[player] { true } else { false } }

    /// Who ended otherwise than by going home.
    var failed: (player: String, status: Int32)? {
        for player in players {
            if case .ended(let status) = states[player], status != 0 { return (player, status) }
        }
        return nil
    }
}
