/// The outcome of a send.
public struct SendReceipt: Sendable, Hashable {
    /// The send's id: the caller's own, or the one that the client has chosen.
    public let id: String
    /// For each recipient the indices of the messages in its mailbox.
    public let indices: [String: ClosedRange<Int>]
}
