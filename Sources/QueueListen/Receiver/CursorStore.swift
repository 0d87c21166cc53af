/// Stores the position of a reader.
///
/// An implementation that saves the cursor in the same transaction as the effects of the messages
/// makes each message take effect exactly once, whatever fails.
public protocol CursorStore: Sendable {
    /// Returns the cursor that was saved last; `nil` if none was.
    ///
    /// An error ends ``Receiver/run()``.
    func load() async throws -> Cursor?

    /// Saves the position after a message. Called after each message whose handler has returned.
    ///
    /// An error ends ``Receiver/run()``: the message is handled again by the next run.
    func save(_ cursor: Cursor) async throws
}
