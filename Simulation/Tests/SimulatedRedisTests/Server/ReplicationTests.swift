// A replica that has applied a master's effects has its data; one that is promoted early lacks the tail.

import SimulatedRedis
import Testing

@Suite("Replication") struct ReplicationTests {
    @Test("a replica has the master's data at each offset", arguments: 0..<20 as Range<UInt64>)
    func offsets(seed: UInt64) throws {
        var master = SimulatedRedis(settings: .init(keepsEffects: true), now: 1_700_000_000_000_000)
        var scripts = try ScriptLibrary()
        _ = try scripts.load { master.execute($0) ?? .null }
        var replica = SimulatedRedis(settings: .init(keepsEffects: true), now: master.now)
        replica.synchronize(with: master)
        var generator = EngineGenerator(seed: seed, time: master.now)
        var commands = CommandGenerator(seed: seed, now: master.now / 1000, version: 700)
        var histories: [(offset: Int64, dump: [DumpedKey])] = []
        for operation in generator.operations(200) {
            master.execute(operation.command(scripts))
            master.execute(commands.command())
            histories.append((master.offset, master.dump()))
        }
        // In steps of random sizes.
        var random = SeededGenerator(seed: seed)
        for (offset, dump) in histories where random.chance(20) {
            replica.apply(master.effects(after: replica.offset), upTo: offset)
            #expect(replica.dump() == dump)
            #expect(replica.offset == offset)
        }
        replica.apply(master.effects(after: replica.offset))
        #expect(replica.dump() == master.dump())
    }

    @Test("a promoted replica lacks the tail that it has not applied")
    func promotion() {
        var master = SimulatedRedis(settings: .init(keepsEffects: true))
        var replica = SimulatedRedis()
        replica.synchronize(with: master)
        master.execute("SET", "a", "1")
        let applied = master.offset
        master.execute("EVAL", "redis.call('SET', 'b', '1') redis.call('INCR', 'b')", "0")
        replica.apply(master.effects(after: replica.offset), upTo: applied)
        #expect(replica.execute("SET", "c", "1") == .error("READONLY You can't write against a read only replica."))
        #expect("\(replica.execute("EVAL", "return redis.call('SET', 'c', '1')", "0"))".contains("READONLY"))
        replica.promote()
        #expect(replica.keys == ["a"])
        #expect(replica.execute("SET", "c", "1") == .status("OK"))
    }

    @Test("a replica replies that an expired key is missing, and deletes it when its master does")
    func expiry() {
        var master = SimulatedRedis(settings: .init(keepsEffects: true))
        var replica = SimulatedRedis()
        replica.synchronize(with: master)
        master.execute("SET", "a", "1", "PX", "100")
        replica.apply(master.effects(after: replica.offset))
        replica.advance(by: 200_000)
        #expect(replica.execute("EXISTS", "a") == .integer(0))
        master.advance(by: 200_000)
        #expect(master.execute("GET", "a") == .null)
        #expect(master.effects(after: replica.offset).last?.commands == [["DEL", "a"]])
    }

    @Test("WAIT replies when replicas have acknowledged the offset, or when its time is over")
    func wait() {
        var master = SimulatedRedis(settings: .init(keepsEffects: true))
        let client = master.connect()
        master.execute(["SET", "a", "1"], from: client)
        #expect(master.execute(["WAIT", "1", "100"], from: client) == nil)
        master.acknowledge(master.offset, by: 1)
        expectOne(master.takeDeliveries(), client)
        #expect(master.execute(["WAIT", "2", "100"], from: client) == nil)
        master.advance(by: 100_000)
        expectOne(master.takeDeliveries(), client)
    }

    private func expectOne(_ deliveries: [Delivery], _ client: ClientID) {
        #expect(deliveries.map(\.client) == [client])
        #expect(deliveries.map(\.reply) == [.integer(1)])
    }
}
