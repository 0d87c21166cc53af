// Replication: what a master sends, and how far a replica has executed it.
//
// A master keeps its effects if `Settings.keepsEffects` is set. Nothing is sent by itself: the caller applies effects to
// replicas, as many and as late as it wants. So a replica lags, and a promoted one lacks what it has not applied.

/// The changes by one command, script or transaction of a master. A replica executes it as a whole.
public struct Effect: Hashable, Sendable {
    /// The master's offset after it.
    public let offset: Int64
    /// The commands that a replica executes.
    public let commands: [[Bytes]]
}

/// The part of a server that replication needs.
struct ReplicationState: Hashable, Sendable {
    enum Role: Hashable, Sendable {
        case master
        case replica
    }
    var role = Role.master
    /// Whether a command is one of the master's.
    var isApplying = false
    var offset: Int64 = 0
    var effects: [Effect] = []
    /// The offsets that replicas have acknowledged.
    var acknowledged: [Int: Int64] = [:]

    /// Whether clients may not write.
    var isReadOnly: Bool { role == .replica && !isApplying }
}

extension SimulatedRedis {
    /// The number of bytes of effects so far, those that were applied included.
    public var offset: Int64 { replication.offset }

    /// Whether clients may write.
    public var isMaster: Bool { replication.role == .master }

    /// Returns the effects after an offset, in order.
    public func effects(after offset: Int64) -> ArraySlice<Effect> {
        let first = replication.effects.firstIndex { $0.offset > offset } ?? replication.effects.endIndex
        return replication.effects[first...]
    }

    /// Forgets the effects up to an offset, which no replica needs any more.
    public mutating func forgetEffects(through offset: Int64) {
        replication.effects.removeAll { $0.offset <= offset }
    }

    /// Makes this server a replica with all that a master has.
    public mutating func synchronize(with master: SimulatedRedis) {
        entries = master.entries
        replication = ReplicationState(role: .replica, offset: master.offset)
    }

    /// Executes effects of the master, except those that were applied already.
    ///
    /// - Parameters:
    ///   - effects: Effects of the master in their order, without gaps.
    ///   - limit: The offset behind which effects are not applied yet.
    public mutating func apply(_ effects: some Sequence<Effect>, upTo limit: Int64 = .max) {
        for effect in effects where effect.offset > offset && effect.offset <= limit {
            replication.isApplying = true
            for words in effect.commands {
                guard let command = Command.named(words[0]) else { continue }
                _ = run(command, words)
            }
            replication.isApplying = false
            replication.offset = effect.offset
            // A replica hands the effects on, and keeps them for when it is promoted.
            if settings.keepsEffects { replication.effects.append(effect) }
        }
    }

    /// Makes a replica a master. What it has not applied is lost.
    public mutating func promote() {
        replication.role = .master
        replication.acknowledged = [:]
    }

    /// Notes that a replica has applied all up to an offset. Clients that wait for this receive it.
    public mutating func acknowledge(_ offset: Int64, by replica: Int) {
        replication.acknowledged[replica] = max(offset, replication.acknowledged[replica] ?? 0)
        for client in clients.waiting {
            guard case .replicas(let count, let wanted)? = clients[client]?.wait?.event else { continue }
            let reached = replicas(at: wanted)
            if reached >= count { endWait(client, with: .integer(Int64(reached))) }
        }
    }

    /// The number of replicas that have acknowledged an offset.
    func replicas(at offset: Int64) -> Int { replication.acknowledged.values.count { $0 >= offset } }

    /// Notes a command for the replicas.
    mutating func noteEffect(_ words: [Bytes]) {
        guard settings.keepsEffects, !replication.isApplying else { return }
        pending.append(words)
    }

    /// Ends an effect: replicas execute what was noted as a whole.
    mutating func commitEffects() {
        guard !pending.isEmpty else { return }
        // About the size of the commands in the protocol.
        replication.offset += pending.joined().reduce(Int64(pending.count) * 4) { $0 + Int64($1.count) + 5 }
        replication.effects.append(Effect(offset: offset, commands: pending))
        pending = []
    }
}
