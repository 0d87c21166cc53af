/// What a caller of `listen` asks for.
struct ListenRequest: Sendable {
    var mailbox: String
    var device: String
    /// `nil`: where the device has acknowledged up to, until the first reply says where that is.
    var cursor: Cursor?
    var maxMessages: Int
    var maxBytes: Int
    /// `nil`: without a time limit.
    var deadline: Duration?
    /// Whether one read is the answer, even if it finds nothing: a timeout of 0.
    var readsOnce = false
}
