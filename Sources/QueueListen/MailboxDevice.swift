#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A device of a mailbox: a reader with a position of its own.
public struct MailboxDevice: Sendable, Hashable {
    /// The name that the device passes to `listen`.
    public let name: String
    /// The position up to which the device has acknowledged messages.
    public let acknowledged: Cursor
    /// The time at which its last `listen` began, by the Redis server's clock.
    public let lastSeen: Date
}
