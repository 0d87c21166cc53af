/// An asynchronous sequence of messages and gaps on the topics of one subscriber.
///
/// ```swift
/// let subscription = try await redis.subscribe(to: ["news"])
/// for try await event in subscription {
///     switch event {
///     case .message(let message): show(message.text)
///     case .gap: try await readEverythingAgain()
///     }
/// }
/// ```
///
/// - Messages arrive in the order in which the server sent them, at most once. Every loss is
///   announced by a `.gap`. A `.gap` comes only when all topics are subscribed again, so that what
///   is read after it, together with the messages that follow it, is complete.
/// - A subscription survives breaks of the connection. All subscribers of a client share one
///   connection, and each topic is subscribed with the server once, for any number of subscribers.
/// - One task at a time can read it. It ends when ``cancel()`` is called, when its last reference
///   is released, or when the client stops (with `.clientStopped`). A cancelled reader throws
///   `.cancelled`; another task may continue to read.
/// - When the process dies, the server ends the subscription: messages published meanwhile are
///   lost.
public final class Subscription: AsyncSequence, Sendable {
    /// A message or a gap.
    public typealias Element = SubscriptionEvent
    /// The error of a Redis operation.
    public typealias Failure = RedisError

    let queue: SubscriptionQueue
    private let source: any SubscriptionSource

    init(queue: SubscriptionQueue, source: any SubscriptionSource) {
        self.queue = queue
        self.source = source
    }

    deinit { cancel() }

    /// Reads the events of a subscription.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// A message or a gap.
        public typealias Element = SubscriptionEvent
        /// The error of a Redis operation.
        public typealias Failure = RedisError

        let subscription: Subscription

        /// Waits for the next event; `nil` at the end. See ``Subscription/next()``.
        public func next() async throws(RedisError) -> SubscriptionEvent? { try await subscription.queue.next() }

        /// Waits for the next event on the caller's actor; `nil` at the end. See
        /// ``Subscription/next()``.
        public func next(isolation actor: isolated (any Actor)?) async throws(RedisError) -> SubscriptionEvent? {
            try await subscription.queue.next()
        }
    }

    /// Makes an iterator. All iterators of a subscription read from the same buffer.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription: self) }

    /// Waits for the next event, for loops other than `for`. Returns `nil` when the subscription
    /// was cancelled.
    ///
    /// - Throws: `.cancelled` when the task is cancelled; the subscription then continues.
    ///   `.clientStopped`, `.subscriberTooSlow` and `.notPermitted` (the user has lost the right to
    ///   a topic) after the subscription's end. `.invalidArgument` while another task reads.
    public func next() async throws(RedisError) -> SubscriptionEvent? { try await queue.next() }

    /// Passes events to `sink` on the event loop as they arrive, without waking a task for each,
    /// and returns at the end. It must be called on the event loop, and `sink` must not block.
    package func drain(
        isolation: isolated (any Actor)? = #isolation, into sink: @escaping @Sendable (SubscriptionEvent) -> Void
    ) async throws(RedisError) {
        queue.drain(into: sink)
        _ = try await queue.next()
    }

    /// Adds topics to the subscription, and returns when the server has confirmed them.
    ///
    /// - Throws: `.notPermitted` (an ACL rule forbids a channel), `.timedOut`, `.cancelled`,
    ///   `.clientStopped`, `.invalidArgument` (an empty name). None of these topics is then added.
    public func subscribe(to topics: [SubscriptionTopic]) async throws(RedisError) {
        try await source.join(queue, topics: topics)
    }

    /// Removes topics from the subscription. Buffered events can still be read.
    public func unsubscribe(from topics: [SubscriptionTopic]) async { await source.leave(queue.id, topics: topics) }

    /// Ends the subscription. Buffered events can still be read.
    public func cancel() {
        queue.end(nil)
        source.leaveSoon(queue.id)
    }
}

/// The connections that carry subscriptions.
protocol SubscriptionSource: Sendable {
    /// Adds topics to a subscriber, and returns when they are confirmed.
    func join(_ queue: SubscriptionQueue, topics: [SubscriptionTopic]) async throws(RedisError)
    /// Removes topics from a subscriber, or, with `nil`, the subscriber itself.
    func leave(_ id: UInt64, topics: [SubscriptionTopic]?) async
    /// Removes a subscriber, from any thread.
    func leaveSoon(_ id: UInt64)
}
