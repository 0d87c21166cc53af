public import Hiredis

/// The proof that messages were sent.
public struct Receipt: Sendable, Hashable {
    /// The id of the send: the caller's own, or a generated one.
    public let id: String
    /// The indices of the messages in each recipient's mailbox, in the order in which they were
    /// passed to the send.
    public let indices: [String: ClosedRange<Int>]
    /// The durability that was reached.
    public let durability: Durability
}
