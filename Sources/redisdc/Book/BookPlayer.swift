// One process of a run of a problem: `redisdc book` starts it, nobody else does.
import ArgumentParser
import Foundation
import Hiredis
import LittleBook
import RedisDC

struct BookPlayer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "book-player", shouldDisplay: false)
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
        guard let problem = Book.problem(problem) else { throw ValidationError("no such problem") }
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

    /// Standard input is a pipe to which nobody writes. It ends when the runner does, however that ends.
    private func endWithTheRunner() {
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while read(0, &byte, 1) < 0, errno == EINTR {}
            _exit(1)
        }
    }
}
