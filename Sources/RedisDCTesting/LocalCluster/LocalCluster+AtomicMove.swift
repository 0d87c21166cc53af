import Hiredis

extension LocalCluster {
    /// Moves slots with their keys to another master in one step each, while clients use them.
    ///
    /// The old master copies the slot and then gives it up at once (`CLUSTER MIGRATESLOTS`), so no
    /// command is answered with `ASK` or `TRYAGAIN`. Only Valkey 9 and later have the command; with
    /// other servers use ``move(slots:to:)``. Slots that the target serves already are skipped.
    ///
    /// - Parameters:
    ///   - slots: the slots to move, in 0 to 16383.
    ///   - target: a master of the cluster.
    /// - Throws: `RedisError` if a node refuses a step, for example because it does not know the
    ///   command, or does not reply. ``LocalRedisError`` with the code
    ///   ``LocalRedisError/Code/notHealthy`` if no node serves one of the slots or if the move fails;
    ///   the slot has then not moved.
    public func moveAtomically(slots: some Sequence<Int>, to target: LocalRedis) async throws {
        let targetID = try await self.id(of: target)
        for slot in slots {
            let source = try await self.master(ofSlot: slot)
            if source === target { continue }
            _ = try await source.send(
                "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", .integer(slot), .integer(slot), "NODE", .string(targetID))
            try await self.waitUntilMoved(slot: slot, from: source)
        }
        try await self.waitUntilAllKnow(slots: slots, areServedBy: target)
    }

    private func waitUntilMoved(slot: Int, from source: LocalRedis) async throws {
        while true {
            // In this order: a move that has ended between the two questions has been taken into account.
            let moves = try await self.moves(by: source)
            let served = try await self.slots(by: source).filter { $0.port == self.announcedPort(of: source) }
            guard served.contains(where: { $0.slots.contains(slot) }) else { return }
            if !moves.contains(where: { $0.isActive }) {
                let reason = moves.first { $0.slots == "\(slot)-\(slot)" }?.description ?? "it is not listed"
                throw LocalRedisError(.notHealthy, "cannot move slot \(slot): its move has ended: \(reason)")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// The state of a move, as a node reports it.
    private struct SlotMigration: CustomStringConvertible {
        var slots = ""
        var state = ""
        var message = ""

        var isActive: Bool { !["success", "failed", "cancelled"].contains(self.state) }
        var description: String { self.message.isEmpty ? self.state : "\(self.state), \(self.message)" }
    }

    /// Returns the moves that a node takes part in or has recently taken part in, the latest first.
    private func moves(by node: LocalRedis) async throws -> [SlotMigration] {
        let reply = try await node.send("CLUSTER", "GETSLOTMIGRATIONS").array ?? []
        return reply.map { entry in
            let fields = entry.array?.map { $0.string ?? "" } ?? []
            var move = SlotMigration()
            for index in stride(from: 0, to: fields.count - 1, by: 2) {
                switch fields[index] {
                case "slot_ranges": move.slots = fields[index + 1]
                case "state": move.state = fields[index + 1]
                case "message": move.message = fields[index + 1]
                default: break
                }
            }
            return move
        }
    }
}
