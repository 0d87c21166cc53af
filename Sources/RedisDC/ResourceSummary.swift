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
