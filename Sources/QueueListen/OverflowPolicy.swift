/// The policy for a message that does not fit into a mailbox.
public enum OverflowPolicy: Sendable, Hashable {
    /// The send fails with `.mailboxFull`, for all of its recipients.
    case reject
    /// The oldest messages are deleted, whether they were read or not. A reader that has not read
    /// them receives ``Delivery/Status/truncated(first:)``.
    case dropOldest
}
