/// A subscriber: an asynchronous sequence of messages and gaps.
///
/// ```swift
/// let subscription = try await redis.subscribe(to: ["news"])
/// for try await event in subscription {
///     switch event {
///     case .message(let message): show(message.text)
///     case .gap: try await readEverythingAnew()
///     }
/// }
/// ```
///
/// - Delivery is in the order in which the server sent, at most once. Whatever is missed is announced by a `.gap`, and a
///   `.gap` comes only when the subscription stands again: what is read after it and what arrives after it is complete.
/// - It survives breaks of the connection. All subscribers of a client share one connection, and a topic is subscribed
///   with the server once, however many listen to it.
/// - One task at a time reads it. It ends when it is cancelled, when the last reference goes, or when the client stops
///   (with `.clientStopped`). A cancelled reader throws `.cancelled`; another may read on.
/// - When the process dies, the server forgets it: messages published meanwhile are gone.
public final class Subscription: AsyncSequence, Sendable {
    public typealias Element = SubscriptionEvent

    let queue: SubscriptionQueue
    private let hub: SubscriptionHub

    init(queue: SubscriptionQueue, hub: SubscriptionHub) {
        self.queue = queue
        self.hub = hub
    }

    deinit { cancel() }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let subscription: Subscription

        public func next() async throws(RedisError) -> SubscriptionEvent? { try await subscription.queue.next() }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(subscription: self) }

    /// The next event, for loops that are not a `for`.
    public func next() async throws(RedisError) -> SubscriptionEvent? { try await queue.next() }

    /// Hands events to `sink` on the event loop as they come, without waking a task for each; returns at the end. It must be
    /// called there, and the sink must not block.
    package func drain(
        isolation: isolated (any Actor)? = #isolation, into sink: @escaping @Sendable (SubscriptionEvent) -> Void
    ) async throws(RedisError) {
        queue.drain(into: sink)
        _ = try await queue.next()
    }

    /// Listens to more topics. Returns when the server has confirmed them.
    ///
    /// - Throws: `.notPermitted` (an ACL rule forbids a channel), `.timedOut`, `.cancelled`, `.clientStopped`; then none of
    ///   these topics is listened to.
    public func subscribe(to topics: [SubscriptionTopic]) async throws(RedisError) {
        try await hub.join(queue, topics: topics)
    }

    /// Listens no more to these topics. What has gathered can still be read.
    public func unsubscribe(from topics: [SubscriptionTopic]) async { await hub.leave(queue.id, topics: topics) }

    /// Ends the subscription. What has gathered can still be read.
    public func cancel() {
        queue.end(nil)
        let (hub, id) = (hub, queue.id)
        hub.leaveSoon(id)
    }
}
