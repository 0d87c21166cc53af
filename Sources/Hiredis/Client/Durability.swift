// How safe a change must be before a call returns.

/// The durability that a change must have before a call returns.
///
/// A call that waits for it in vain throws `.notDurable`: the change was made nevertheless.
public enum Durability: Sendable, Hashable {
    /// In the memory of the Redis master.
    ///
    /// Changes that the master loses are lost: none with `appendfsync always`, those of up to two
    /// seconds with `everysec`, and at a failover all that the new master had not received.
    case memory
    /// Also in the memory of this many replicas, 1 to 1,000 (`WAIT`).
    ///
    /// Safer than one machine, but not a consensus: a failover may promote a replica that is not among
    /// them, unless it is the number of all replicas, or the failover prefers the replica that has
    /// received most, as Sentinel and Redis Cluster do among those that they reach.
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
