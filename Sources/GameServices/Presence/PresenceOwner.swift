/// The choice between a client and its user as the one on whose presence an object depends.
public enum PresenceScope: Sendable, Hashable {
    /// The object ends when all clients of the user are gone.
    case user
    /// The object ends when the client that put it is gone.
    case client
}

/// A connection of a client that this process serves: the owner of objects in a bucket.
///
/// ``PresenceBucket/connect(user:client:)`` creates it. It ends with
/// ``PresenceBucket/disconnect(_:)``, when the same client connects again anywhere, or with the
/// process's session.
public struct PresenceOwner: Sendable, Hashable {
    /// The user.
    public let user: String
    /// The client, which is unique among the user's clients: a device, or a window.
    public let client: String
    /// The session of the process in the bucket.
    let session: String
    /// Tells this connection of the client from others.
    let token: UInt64
}

/// The end of connections that the application has not ended: see ``PresenceBucket/losses()``.
public struct PresenceLoss: Sendable {
    /// The cause.
    public enum Cause: Sendable, Hashable {
        /// The session has expired: the process was stopped, or could not reach Redis, for longer
        /// than the session's time to live. The objects have left.
        case expired
        /// Redis has lost changes that it had confirmed, by a failover or a restart. Objects that
        /// survived are kept if their clients connect again before the old session expires.
        case dataLost
    }

    /// The cause.
    public var cause: Cause
    /// The connections that have ended. Connect those clients again that are still connected, and
    /// put their objects again.
    public var owners: [PresenceOwner]
}
