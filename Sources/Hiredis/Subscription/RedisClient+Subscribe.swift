extension RedisClient {
    /// Subscribes to topics, and returns when the server has confirmed each of them: see
    /// ``Redis/subscribe(to:buffer:)``.
    public func subscribe(to topics: [SubscriptionTopic], buffer: SubscriptionBuffer) async throws(RedisError)
        -> Subscription
    {
        guard buffer.messages >= 1, buffer.bytes >= 1 else {
            throw RedisError(
                .invalidArgument,
                "the subscription buffer is \(buffer.messages) messages and \(buffer.bytes) bytes, expected at least 1 of each"
            )
        }
        let subscription = Subscription(queue: SubscriptionQueue(buffer), hub: subscriptions)
        try await subscription.subscribe(to: topics)
        return subscription
    }
}
