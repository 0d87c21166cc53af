extension GatewayClient {
    /// Returns the messages after a position as an endless sequence, which waits for messages when it
    /// has none.
    ///
    /// Acknowledges nothing: call ``acknowledge(_:timeout:)`` when a message was processed. The next
    /// message is read when it is asked for: a slow loop slows the connection down, and loses
    /// nothing.
    ///
    /// The sequence continues through broken connections, restarts of nodes and absences of Redis. It
    /// ends after ``GatewayEvent/superseded``. A loop that ends closes its connection. When two readers
    /// of a device use long polling, either may be the one that ends.
    ///
    /// - Parameter cursor: the position after which to begin; `nil` for the last one that the device
    ///   has acknowledged.
    /// - Returns: a sequence that throws `.unknownSession` and `.loggedInElsewhere` when the session
    ///   has ended, `.cancelled` when the task was cancelled, and the codes with which the gateway
    ///   refuses a reader permanently, such as `.malformed` and `.badSignature`.
    public func messages(after cursor: String? = nil) -> GatewayMessages {
        GatewayMessages(client: self, cursor: cursor)
    }
}

/// The messages of a mailbox as an asynchronous sequence: see ``GatewayClient/messages(after:)``.
///
/// Each iteration begins at the position with which the sequence was created.
public struct GatewayMessages: AsyncSequence, Sendable {
    /// A message, the report of a loss, or the end.
    public typealias Element = GatewayEvent
    /// The error of the iterator.
    public typealias Failure = GatewayError

    let client: GatewayClient
    let cursor: String?

    /// Creates an iterator, which begins at the sequence's position.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(follower: MailFollower(client, after: cursor))
    }

    /// Reads a mailbox event by event.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let follower: MailFollower

        /// Returns the next event; waits until there is one. `nil` after
        /// ``GatewayEvent/superseded``.
        ///
        /// - Throws: the codes that ``GatewayClient/messages(after:)`` lists.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(GatewayError) -> GatewayEvent? {
            try await follower.next()
        }

        /// Returns the next event; waits until there is one. `nil` after
        /// ``GatewayEvent/superseded``.
        ///
        /// - Throws: the codes that ``GatewayClient/messages(after:)`` lists.
        public mutating func next() async throws(GatewayError) -> GatewayEvent? {
            try await next(isolation: #isolation)
        }
    }
}
