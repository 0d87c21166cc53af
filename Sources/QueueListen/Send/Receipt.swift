// What a sender gets.

/// How safe messages are to be before a send returns.
public enum Durability: Sendable, Hashable {
    /// In the memory of the Redis master. What that loses is lost: with `appendfsync always` nothing, with `everysec` up to
    /// two seconds, at a failover what the new master had not got.
    case memory
    /// In the memory of so many replicas too (`WAIT`). Better than one machine, and still no consensus.
    case replicated(Int)
    /// On the master's disk (`WAITAOF`, from Redis 7.2 on).
    case fsynced
}

extension Durability: CustomStringConvertible {
    public var description: String {
        switch self {
        case .memory: "memory"
        case .replicated(let count): "replicated(\(count))"
        case .fsynced: "fsynced"
        }
    }
}

/// Proof that messages were sent.
public struct Receipt: Sendable, Hashable {
    /// The send's id: the caller's own, or one that was made for it.
    public let id: String
    /// The indices that the messages have in each recipient's mailbox, in the order in which they were given.
    public let indices: [String: ClosedRange<Int>]
    /// What was reached.
    public let durability: Durability
}
