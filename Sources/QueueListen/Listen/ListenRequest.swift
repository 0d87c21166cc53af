/// The request of a call of `listen`.
struct ListenRequest: Sendable {
    var mailbox: String
    var device: String
    /// `nil`: the last position that the device acknowledged, until the first reply returns it.
    var cursor: Cursor?
    /// The reader to which the call belongs; `nil` for a call of its own, which acknowledges its cursor.
    var reader: Reader?
    var maxMessages: Int
    var maxBytes: Int
    /// `nil`: without a time limit.
    var deadline: Duration?
    /// Whether one read is the answer, even if it finds nothing: a timeout of 0.
    var readsOnce = false

    /// A reader that listens with one poll for all of its calls, and acknowledges nothing by reading.
    struct Reader: Sendable {
        /// The number of its poll.
        var poll: UInt64
        /// Whether the server has answered one of its calls: it knows the poll, and refuses it when a newer one has
        /// begun.
        var hasBegun: Bool
        /// Whether it fails if the mailbox does not have its device, instead of making it known.
        var requiresDevice = false
    }
}
