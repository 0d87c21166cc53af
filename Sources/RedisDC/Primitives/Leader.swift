/// The holder of an ``Election``'s leadership.
public struct Leader: Sendable, Hashable {
    /// The host, process id and program name of the leader.
    public var node: String
    /// The session of the leader's process.
    public var session: String
    /// The fence of the leadership: a later leader has a higher one.
    public var term: UInt64
}
