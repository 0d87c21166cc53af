/// The sessions and resources of a namespace, as ``Coordinator/list()`` found them.
public struct ResourceList: Sendable {
    /// The number of live sessions, each in one partition of one process.
    public var sessions: Int
    /// The resources, in no particular order. One that changes while the list is read may be in it
    /// twice.
    public var resources: [ResourceSummary]
}
