// One process of a run. `littlebook` starts it; it is not meant for users.
import ArgumentParser
import CommandLineTool
import Foundation
import Hiredis
import LittleBook
import RedisDC

/// The hidden `littlebook player` command, which plays one role of a problem.
struct PlayerCommand: AsyncParsableCommand {
    static let firstArgument = "player"
    static let configuration = CommandConfiguration(commandName: "littlebook player")
    @OptionGroup var global: GlobalOptions
    @Argument var problem: String
    @Argument var player: String
    @Option var run: String
    @Option var processes: Int
    @Option var rounds: Int
    @Option var life: Int
    @Option var ttl: Int

    func run() async throws {
        endWithTheRunner()
        guard let problem = Book.problem(problem) else { throw ValidationError("there is no problem \"\(problem)\"") }
        let run = Run(name: run, processes: processes, rounds: rounds)
        var configuration = CoordinatorConfiguration()
        configuration.ttl = .seconds(ttl)
        configuration.nodeName = player
        let settings = configuration
        try await withRedisClient(global.configuration()) { redis in
            try await withCoordinator(redis: redis, namespace: run.name, configuration: settings) { coordinator in
                try await Player.play(
                    problem, as: player, life: life, in: run, coordinator: coordinator, redis: redis)
            }
        }
    }

    /// Exits this process when the one that started it ends.
    ///
    /// Standard input is a pipe that nothing is written to. The kernel closes it when its writer
    /// ends, even by SIGKILL.
    private func endWithTheRunner() {
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while read(0, &byte, 1) < 0, errno == EINTR {}
            _exit(1)
        }
    }
}
