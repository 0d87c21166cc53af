// Forks, restarts, eviction, the limit of memory, steps of the clock and slots.

import SimulatedRedis
import Testing

@Suite("Faults") struct FaultTests {
    @Test("a copy is a fork: neither sees what the other does afterwards")
    func fork() {
        var server = SimulatedRedis()
        server.execute("HSET", "h", "a", "1")
        var fork = server
        #expect(fork.digest == server.digest)
        server.execute("HSET", "h", "a", "2")
        fork.execute("RPUSH", "l", "x")
        #expect(server.execute("HGET", "h", "a") == .bulk("2"))
        #expect(fork.execute("HGET", "h", "a") == .bulk("1"))
        #expect(server.keys == ["h"])
        #expect(fork.digest != server.digest)
    }

    @Test("the digest does not depend on the order in which a state was made")
    func digest() {
        var one = SimulatedRedis()
        var other = one
        for field in ["a", "b", "c"] { one.execute("HSET", "h", Bytes(field), "1") }
        for field in ["c", "b", "x", "a"] { other.execute("HSET", "h", Bytes(field), "1") }
        #expect(one.digest != other.digest)
        other.execute("HDEL", "h", "x")
        #expect(one.digest == other.digest)
    }

    @Test("a restart loses what the caller says, and scripts and clients in any case")
    func restart() {
        var server = SimulatedRedis()
        _ = server.connect()
        server.execute("SET", "a", "1")
        server.save()
        server.execute("SET", "b", "1")
        let sha = server.execute("SCRIPT", "LOAD", "return 1").bytes ?? ""
        var copies = [server, server, server]
        copies[0].restart(losing: .nothing)
        copies[1].restart(losing: .sinceSave)
        copies[2].restart(losing: .everything)
        #expect(copies.map { $0.keys.sorted() } == [["a", "b"], ["a"], []])
        #expect(copies[0].execute("EVALSHA", sha, "0") == .error("NOSCRIPT No matching script. Please use EVAL."))
    }

    @Test("an evicted key is gone, and a key expires when the clock steps past its time")
    func eviction() {
        var server = SimulatedRedis()
        server.execute("SET", "a", "1")
        server.execute("SET", "b", "1", "PX", "1000")
        let evicted = [server.evict("a"), server.evict("a")]
        #expect(evicted == [true, false])
        server.advance(by: 1_001_000)
        #expect(server.keys == [])
        server.advance(by: -2_000_000)
        #expect(server.execute("TIME") == .array([.bulk("1699999999"), .bulk("1000")]))
    }

    @Test(
        "at the limit of memory, commands and scripts are refused as by a real server",
        arguments: 0..<30 as Range<UInt64>)
    func memory(seed: UInt64) throws {
        try RealServer.with { server in
            guard try Dialect(of: server).version == 700 else { return }
            let now = try server.time()
            var simulated = SimulatedRedis(now: now)
            var commands = CommandGenerator(seed: seed, now: now / 1000, version: 700)
            var scripts = try ScriptLibrary()
            _ = try scripts.load { simulated.execute($0) ?? .null }
            _ = try scripts.load { try server.connection.send($0) }
            var engine = EngineGenerator(seed: seed, time: now)
            for (index, operation) in engine.operations(100).enumerated() {
                if index == 50 {
                    simulated.settings.maxMemory = -1
                    _ = try server.connection.send(["CONFIG", "SET", "maxmemory", "1"])
                }
                if case .scan = operation.kind { continue }
                let list = [operation.command(scripts), commands.command()].filter {
                    $0[0] != "BLPOP" && $0[0] != "BRPOP"
                }
                let replies = try server.connection.send(pipeline: list)
                for (command, real) in zip(list, replies) {
                    let reply = simulated.execute(command) ?? .null
                    let dialect = try Dialect(of: server)
                    #expect(dialect.isSame(command, real: real, simulated: reply), "\(command): \(real) and \(reply)")
                }
            }
        }
    }

    @Test("the estimated size follows what is stored")
    func size() {
        var server = SimulatedRedis()
        #expect(server.estimatedSize == 0)
        server.execute("RPUSH", "l", "abc", "d")
        #expect(server.estimatedSize == 1 + 64 + 4 + 32)
        server.execute("LPOP", "l")
        server.execute("LPOP", "l")
        #expect(server.estimatedSize == 0)
    }

    @Test("keys have the slots of the cluster specification")
    func slots() {
        #expect(SimulatedRedis.slot(of: "123456789") == 12739)
        #expect(SimulatedRedis.slot(of: "{user1000}.following") == SimulatedRedis.slot(of: "user1000"))
        #expect(SimulatedRedis.slot(of: "foo{}{bar}") != SimulatedRedis.slot(of: "bar"))
        #expect(SimulatedRedis.slot(of: "foo{{bar}}") == SimulatedRedis.slot(of: "{bar"))
    }

    @Test("a slot that moves is served by one of two servers at each time")
    func migration() {
        var source = SimulatedRedis()
        var target = SimulatedRedis()
        let slot = SimulatedRedis.slot(of: "a")
        for (address, index) in [("source:1", 0), ("target:1", 1)] {
            if index == 0 { source.joinCluster(as: Bytes(address), owners: [(0...16383, "source:1")]) }
            if index == 1 { target.joinCluster(as: Bytes(address), owners: [(0...16383, "source:1")]) }
        }
        let client = target.connect()
        source.execute("SET", "a", "1")
        #expect(source.execute("DEL", "a", "b") == .error("CROSSSLOT Keys in request don't hash to the same slot"))
        #expect(target.execute("GET", "a") == .error(Bytes("MOVED \(slot) source:1")))
        source.beginMigration(of: slot, to: "target:1")
        target.beginImport(of: slot, from: "source:1")
        #expect(source.execute("GET", "a") == .bulk("1"))
        if let moved = source.takeKey("a") { target.putKey(moved) }
        #expect(source.execute("GET", "a") == .error(Bytes("ASK \(slot) target:1")))
        #expect(target.execute(["GET", "a"], from: client) == .error(Bytes("MOVED \(slot) source:1")))
        target.execute(["ASKING"], from: client)
        #expect(target.execute(["GET", "a"], from: client) == .bulk("1"))
        source.setOwner(of: slot...slot, to: "target:1")
        target.setOwner(of: slot...slot, to: "target:1")
        #expect(source.execute("GET", "a") == .error(Bytes("MOVED \(slot) target:1")))
        #expect(target.execute("GET", "a") == .bulk("1"))
    }
}
