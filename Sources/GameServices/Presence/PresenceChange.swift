/// A value under a key of a bucket, which exists as long as its owner is present.
public struct PresenceObject: Sendable, Hashable {
    /// The key.
    public var key: String
    /// The value.
    public var value: [UInt8]
    /// The user whose object this is.
    public var user: String
    /// The client whose object this is; `nil` for an object of the user.
    public var client: String?
    /// The version of the bucket at which the value was put.
    public var version: Int

    /// The value as text. Bytes that are not UTF-8 become replacement characters.
    public var text: String { String(decoding: value, as: UTF8.self) }
    /// The client or user on whose presence the object depends.
    public var scope: PresenceScope { client == nil ? .user : .client }
}

/// A change of a bucket.
public struct PresenceChange: Sendable, Hashable {
    /// The kind of the change.
    public enum Kind: Sendable, Hashable {
        /// An object was put, or its value was replaced.
        case put(PresenceObject, isNew: Bool)
        /// An object has left. Each object leaves once.
        case left(PresenceLeave)
    }

    /// The version of the bucket after the change.
    public var version: Int
    /// The kind of the change.
    public var kind: Kind
}

/// The end of an object.
public struct PresenceLeave: Sendable, Hashable {
    /// The reason why an object has left.
    public enum Reason: Sendable, Hashable {
        /// Its user has removed it.
        case removed
        /// Its owner was gone, and the grace period has passed.
        case gone
        /// The process that served its owner has died, or was stopped for too long.
        case processDied
    }

    /// The key of the object.
    public var key: String
    /// The user whose object it was.
    public var user: String
    /// The client whose object it was; `nil` for an object of the user.
    public var client: String?
    /// The reason.
    public var reason: Reason
}

/// All objects of a bucket at one version.
public struct PresenceSnapshot: Sendable {
    /// The objects, in the order of the bytes of their keys.
    public var objects: [PresenceObject]
    /// The position after which ``PresenceBucket/changes(after:)`` continues.
    public var position: PresencePosition
}

/// An element of ``PresenceBucket/changes(after:)``.
public enum PresenceEvent: Sendable {
    /// All objects. Replaces what the reader knew.
    case snapshot(PresenceSnapshot)
    /// The next change.
    case change(PresenceChange)
    /// Changes are missing here. A snapshot follows.
    case gap
}

/// A state of a bucket.
public struct PresencePosition: Sendable, Hashable {
    /// The number of changes since the bucket began.
    public internal(set) var version: Int
    /// Tells this bucket from one that Redis had before it lost or forgot it.
    var epoch: UInt64
    /// Tells this version from one that Redis has lost.
    var tag: UInt64
}
