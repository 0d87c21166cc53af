import Hiredis

extension LocalCluster {
    /// Moves slots with their keys to another master while clients use them.
    ///
    /// Each slot is moved as `redis-cli --cluster reshard` does: it is marked on both nodes, its keys
    /// are migrated, and then all masters are notified. Meanwhile the old master answers `ASK` or
    /// `TRYAGAIN` for keys that it does not have. Slots that the target serves already are skipped.
    ///
    /// - Parameters:
    ///   - slots: the slots to move, in 0 to 16383.
    ///   - target: a master of the cluster.
    /// - Throws: `RedisError` if a node refuses a step or does not reply; the slot is then left as
    ///   it is. ``LocalRedisError`` with the code ``LocalRedisError/Code/notHealthy`` if no node
    ///   serves one of the slots.
    public func move(slots: some Sequence<Int>, to target: LocalRedis) async throws {
        for slot in slots {
            let source = try await self.master(ofSlot: slot)
            if source === target { continue }
            try await self.beginMove(slot: slot, from: source, to: target)
            try await self.finishMove(slot: slot, from: source, to: target)
        }
        try await self.waitUntilAllKnow(slots: slots, areServedBy: target)
    }

    /// The nodes learn it by gossip, and answer with the old master until then. They also learn the epoch that the target
    /// has chosen, without which its replica cannot replace it.
    func waitUntilAllKnow(slots: some Sequence<Int>, areServedBy target: LocalRedis) async throws {
        try await waitUntil("all nodes know the new master of the moved slots", within: .seconds(60)) {
            let epochs = try await self.epochs(by: target)
            for node in self.nodes where node.isResponsive {
                let served = try await self.slots(by: node).filter { $0.port == self.announcedPort(of: target) }
                guard slots.allSatisfy({ slot in served.contains { $0.slots.contains(slot) } }) else { return false }
                guard try await self.epochs(by: node) == epochs else { return false }
            }
            return true
        }
    }

    /// Marks a slot as one that is moved, and leaves its keys where they are.
    ///
    /// Until ``finishMove(slot:from:to:)``, the old master answers `ASK` for keys that it does not
    /// have.
    ///
    /// - Throws: `RedisError` if a node refuses or does not reply.
    public func beginMove(slot: Int, from source: LocalRedis, to target: LocalRedis) async throws {
        let (sourceID, targetID) = (try await self.id(of: source), try await self.id(of: target))
        _ = try await target.send("CLUSTER", "SETSLOT", .integer(slot), "IMPORTING", .string(sourceID))
        _ = try await source.send("CLUSTER", "SETSLOT", .integer(slot), "MIGRATING", .string(targetID))
    }

    /// Migrates one key of a slot that is moved.
    ///
    /// - Throws: `RedisError` if the node refuses or does not reply.
    public func migrate(key: String, from source: LocalRedis, to target: LocalRedis) async throws {
        try await self.migrate([.string(key)], from: source, to: target)
    }

    /// Migrates the remaining keys of a slot, and assigns the slot to its new master.
    ///
    /// - Throws: `RedisError` if a node refuses or does not reply.
    public func finishMove(slot: Int, from source: LocalRedis, to target: LocalRedis) async throws {
        while true {
            let keys = try await source.send("CLUSTER", "GETKEYSINSLOT", .integer(slot), 100).array ?? []
            if keys.isEmpty { break }
            try await self.migrate(keys.map { .bytes($0.bytes ?? []) }, from: source, to: target)
        }
        let targetID = try await self.id(of: target)
        // The new master first: a client that asks it after the old one would otherwise be sent back and forth.
        let others = try await self.masters().filter { $0 !== source && $0 !== target }
        for node in [target, source] + others where node.isResponsive {
            _ = try await node.send("CLUSTER", "SETSLOT", .integer(slot), "NODE", .string(targetID))
        }
    }

    private func migrate(_ keys: [RedisArgument], from source: LocalRedis, to target: LocalRedis) async throws {
        let password = target.configuration.password.map { [RedisArgument("AUTH"), .string($0)] } ?? []
        let arguments: [RedisArgument] = ["MIGRATE", "127.0.0.1", .integer(target.port), "", 0, 10_000]
        _ = try await source.send(RedisCommand(arguments + password + ["KEYS"] + keys), timeout: .seconds(15))
    }

    func id(of node: LocalRedis) async throws -> String {
        try await node.send("CLUSTER", "MYID").string ?? ""
    }
}
