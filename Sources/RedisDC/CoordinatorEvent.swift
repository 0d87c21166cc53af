/// A change in a coordinator's session, from ``Coordinator/events()``.
///
/// More cases may be added: switch over it with a `default`.
public enum CoordinatorEvent: Sendable {
    /// A session with Redis began.
    case sessionStarted(id: String)
    /// A session was lost: its leases are lost and the bodies that held them are cancelled. A new
    /// session begins by itself.
    case sessionLost(id: String, SessionLoss)
    /// Redis refused a session. The coordinator tries again.
    case sessionRefused(RedisDCError)
    /// Redis lost data of this namespace: signalled permits may be gone. The next operation of a
    /// handle that knows how a resource is made makes it again.
    case dataLost
}
