/// A change in a coordinator's session, from ``Coordinator/events()``.
///
/// More cases may be added: switch over it with a `default`.
public enum CoordinatorEvent: Sendable {
    /// A session with Redis began.
    case sessionStarted(id: String)
    /// A session was lost: its leases are lost and the bodies that held them are cancelled. The
    /// coordinator begins a new one.
    case sessionLost(id: String, SessionLoss)
    /// Redis refused a session, or its heartbeat because the user lacks a right. The operations that
    /// wait fail with this error. The coordinator tries again every second. A session without
    /// heartbeats is lost after its TTL.
    case sessionRefused(RedisDCError)
    /// Redis lost data of this namespace that this process cannot repair: a lease, permits that others
    /// have taken since, or what was confirmed too long ago. The next operation through a handle that
    /// can create a missing resource creates it again.
    case dataLost
    /// Redis had lost the last operations of this process in a failover, and the process has carried them out
    /// again: signals, count-downs, creations, changes and ends of resources, ends of claims, and permits
    /// that it had consumed.
    ///
    /// Nothing else of this process is lost, unless ``dataLost`` comes as well.
    case repaired(operations: Int)
    /// This process has set a claim of a dead process aside that cannot be ended, because a record in
    /// Redis is damaged: its permits stay taken. ``Coordinator/list(limit:)`` reports the damaged records.
    case claimSetAside(id: String, resource: String)
}

/// The reason for the loss of a session.
public enum SessionLoss: Sendable, Hashable, CustomStringConvertible {
    /// Its heartbeats did not reach Redis in time.
    case expired
    /// Redis no longer knows the session: its data was deleted or rolled back.
    case dataLost

    /// The reason in words.
    public var description: String {
        switch self {
        case .expired: "its heartbeats did not reach Redis in time"
        case .dataLost: "Redis has lost its data"
        }
    }
}
