/// The durability that messages must have before a send returns.
///
/// A send that takes too long to become durable throws `.notDurable`: the messages are sent
/// nevertheless.
public enum Durability: Sendable, Hashable {
    /// In the memory of the Redis master.
    ///
    /// Messages that the master loses are lost: none with `appendfsync always`, those of up to two
    /// seconds with `everysec`, and at a failover all that the new master had not received.
    case memory
    /// Also in the memory of this many replicas, 1 to 1,000 (`WAIT`).
    ///
    /// Safer than one machine, but not a consensus.
    case replicated(Int)
    /// On the master's disk (`WAITAOF`, Redis 7.2 or later).
    case fsynced
}

extension Durability: CustomStringConvertible {
    /// The name of the case, with the number of replicas: `memory`, `replicated(2)`, `fsynced`.
    public var description: String {
        switch self {
        case .memory: "memory"
        case .replicated(let count): "replicated(\(count))"
        case .fsynced: "fsynced"
        }
    }
}
