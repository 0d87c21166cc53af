// The server, its replica, and the time by its clock.
import Hiredis
import NIOCore
import SimulatedRedis

/// A master with one replica, which may lag.
struct Servers {
    private(set) var master: SimulatedRedis
    private var replica: SimulatedRedis
    /// The number of promotions and restarts so far: connections to an earlier server are dead.
    private(set) var generation = 0
    /// How many microseconds the server's clock is ahead of the world's, apart from its beginning.
    private var clockOffset: Int64 = 0
    private var hashes: [ObjectIdentifier: Bytes] = [:]
    /// The scripts that clients have loaded into the master.
    private var loaded: Set<ObjectIdentifier> = []
    private let alteredScripts: (String) -> String

    init(alteredScripts: @escaping (String) -> String) {
        self.alteredScripts = alteredScripts
        master = SimulatedRedis(settings: .init(keepsEffects: true), now: Self.beginning)
        replica = SimulatedRedis(settings: .init(keepsEffects: true), now: Self.beginning)
        replica.synchronize(with: master)
    }

    /// What the records of the master depend on: every change of them makes another offset.
    struct Version: Equatable {
        private let generation: Int
        private let offset: Int64
        private let now: Int64

        init(_ servers: Servers) {
            (generation, offset, now) = (servers.generation, servers.master.offset, servers.master.now)
        }
    }

    /// The time of the server's clock at the beginning of the world, in microseconds since 1970.
    static let beginning: Int64 = 1_700_000_000_000_000

    mutating func advance(to time: Time) {
        master.advance(to: Self.beginning + time + clockOffset)
        replica.advance(to: Self.beginning + time + clockOffset)
    }

    /// Lets the clock step.
    mutating func step(by microseconds: Int64) { clockOffset += microseconds }

    /// Lets the replica execute what the master has sent, but for the last `lag` effects.
    mutating func replicate(lag: Int) {
        let effects = master.effects(after: replica.offset)
        replica.apply(effects.dropLast(lag))
        master.forgetEffects(through: replica.offset)
    }

    /// Lets the replica lag by so many effects at most.
    mutating func replicate(maxLag: Int) {
        let effects = master.effects(after: replica.offset)
        if effects.count > maxLag { replicate(lag: maxLag) }
    }

    /// The number of effects that the master, and its replica, have.
    var offset: (master: Int64, replica: Int64) { (master.offset, replica.offset) }

    /// The number of effects that the replica lacks.
    var lag: Int { master.effects(after: replica.offset).count }

    /// Mixes in the state.
    func mix(into fingerprint: inout Fingerprint, withReplica: Bool) {
        fingerprint.mix(master.digest, generation, clockOffset)
        if withReplica { fingerprint.mix(replica.digest, Array(master.effects(after: replica.offset))) }
    }

    /// Makes the replica the master, and gives it a new replica.
    mutating func promote() {
        replica.promote()
        master = replica
        replica = SimulatedRedis(settings: .init(keepsEffects: true), now: master.now)
        replica.synchronize(with: master)
        generation += 1
        loaded = []
    }

    mutating func restart(losing loss: SimulatedRedis.Loss) {
        master.restart(losing: loss)
        replica.synchronize(with: master)
        generation += 1
        loaded = []
    }

    /// Runs a command.
    mutating func run(_ command: RedisCommand) -> RESPValue {
        RESPValue(master.execute(command.arguments.map(Bytes.init)) ?? .null)
    }

    mutating func save() { master.save() }

    mutating func connect() -> ClientID { master.connect() }

    mutating func disconnect(_ client: ClientID) { master.disconnect(client) }

    mutating func takeDeliveries() -> [Delivery] { master.takeDeliveries() }

    mutating func subscribe(_ client: ClientID, to channel: String) {
        master.execute(["SUBSCRIBE", Bytes(channel)], from: client)
    }

    /// Whether a client has loaded a script since the server became the master.
    func knows(_ script: RedisScript) -> Bool { loaded.contains(ObjectIdentifier(script)) }

    mutating func load(_ script: RedisScript) { loaded.insert(ObjectIdentifier(script)) }

    /// Runs a script by its hash, and loads it where it is missing.
    mutating func run(_ script: RedisScript, _ keys: [String], _ arguments: [RedisArgument]) -> RESPValue {
        let id = ObjectIdentifier(script)
        for _ in 0..<2 {
            if let hash = hashes[id] {
                let words = ["EVALSHA", hash, Bytes(Int64(keys.count))] + keys.map { Bytes($0) }
                let reply = master.execute(words + arguments.map(Bytes.init)) ?? .null
                let value = RESPValue(reply)
                if value.errorMessage?.hasPrefix("NOSCRIPT") != true { return value }
            }
            hashes[id] = master.execute("SCRIPT", "LOAD", Bytes(alteredScripts(script.source))).bytes
        }
        return .error("ERR the script cannot be loaded")
    }
}

extension Bytes {
    fileprivate init(_ argument: RedisArgument) {
        switch argument {
        case .string(let text): self.init(text)
        case .bytes(let bytes): self.init(bytes)
        case .integer(let number): self.init(Int64(number))
        case .buffer(let buffer): self.init(Array(buffer.readableBytesView))
        }
    }
}
