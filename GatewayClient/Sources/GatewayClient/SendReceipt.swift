/// The outcome of a send.
public struct SendReceipt: Sendable, Hashable {
    /// The send's id.
    public let id: String
    /// For each recipient the indices of the messages in its mailbox.
    public let indices: [String: ClosedRange<Int>]
}
