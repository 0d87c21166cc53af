/// The request of a call of `listen`.
struct ListenRequest: Sendable {
    var mailbox: String
    var device: String
    /// `nil`: the last position that the device acknowledged, until the first reply returns it.
    var cursor: Cursor?
    var maxMessages: Int
    var maxBytes: Int
    /// `nil`: without a time limit.
    var deadline: Duration?
    /// Whether one read is the answer, even if it finds nothing: a timeout of 0.
    var readsOnce = false
}
