/// The sessions and resources of a namespace, as ``Coordinator/list(limit:)`` found them.
public struct ResourceList: Sendable {
    /// The number of live sessions, each in one partition of one process.
    public var sessions: Int
    /// The resources, in no particular order. One that changes while the list is read may be in it
    /// twice.
    public var resources: [ResourceSummary]
    /// Records that cannot be read, or cannot be ended because another one is damaged: another program
    /// has written to the keys.
    public var damaged: [DamagedRecord]
    /// Whether the whole namespace was read; `false` if the limit was reached before.
    public var isComplete = true
}

/// A record in Redis that is damaged.
///
/// Operations on its resource fail. To use the name again, delete the fields of all its damaged
/// records with `HDEL`; the next operation that can create the resource creates it again.
public struct DamagedRecord: Sendable, Hashable {
    /// The name of the resource; empty if it is unknown.
    public var resource: String
    /// The key in Redis, a hash.
    public var key: String
    /// The field in the hash. It begins with `t:` if it is the resource's record, and with `x:` if it
    /// is a claim of a dead process that cannot be ended, followed by the claim's session, slot and
    /// number.
    public var field: String
}

/// The state of one resource in a ``ResourceList``.
public struct ResourceSummary: Sendable {
    /// The name of the resource.
    public var name: String
    /// The kind of the resource.
    public var kind: ResourceKind
    /// The total number of permits, as created or last resized.
    public var permits: Int
    /// The number of permits available now. Negative after ``Semaphore/resize(to:)`` lowered
    /// ``permits`` below the number in use. Almost 2^50 when
    /// the resource is open for all, as a latch is that has been counted down.
    public var available: Int
    /// The number of waiters.
    public var waiters: Int
    /// The time for which the first waiter has waited, by Redis's clock; `nil` without waiters.
    public var longestWait: Duration?
}
