// How many operations of the engine the simulated server executes.

import SimulatedRedis
import Testing

@Suite("Throughput") struct ThroughputTests {
    @Test("the rate of operations is printed")
    func rate() throws {
        var server = SimulatedRedis()
        var scripts = try ScriptLibrary()
        _ = try scripts.load { server.execute($0) ?? .null }
        var generator = EngineGenerator(seed: 1, time: server.now)
        let commands = generator.operations(20_000).map { $0.command(scripts) }
        let pairs: [[Bytes]] = (1...10_000).flatMap { number -> [[Bytes]] in
            let keys: [Bytes] = ["2", "b:book", "b:index", "c:sessA:0"]
            let acquire: [Bytes] = [Bytes(Int64(2 * number)), "t:lock", "mf", "1", "m", "1700000000 5"]
            let release: [Bytes] = [Bytes(Int64(2 * number + 1)), "t:lock", Bytes(Int64(2 * number)), "1700000000 5"]
            return [
                ["EVALSHA", scripts.digest("engine/acquire")] + keys + acquire,
                ["EVALSHA", scripts.digest("engine/release_mutex")] + keys + release,
            ]
        }
        let join: [Bytes] = [
            "b:book", "b:index", "b:sessions", "b:values", "sessA", "epoch001", "9000000", "1 layout 3", "",
        ]
        server.execute(["EVALSHA", scripts.digest("engine/join"), "4"] + join + ["0", "1700000000 0"])
        let random = rate(commands, server)
        let locks = rate(pairs, server)
        print("\(Int(random)) random operations of the engine/s, \(Int(locks)) acquires and releases of a lock/s")
        server.execute(pairs[0])
        #expect(server.execute(pairs[1]) == .integer(1))
    }

    private func rate(_ commands: [[Bytes]], _ server: SimulatedRedis) -> Double {
        var server = server
        let clock = ContinuousClock()
        let time = clock.measure { for command in commands { server.execute(command) } }
        return Double(commands.count) / (time / .seconds(1))
    }
}
