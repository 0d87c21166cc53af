extension Node {
    func subscribe(to topics: [SubscriptionTopic], buffer: SubscriptionBuffer) async throws(RedisError) -> Subscription
    {
        let subscription = Subscription(queue: try SubscriptionQueue(validating: buffer), source: subscriptions)
        try await subscription.subscribe(to: topics)
        return subscription
    }
}

extension SubscriptionQueue {
    /// - Throws: `.invalidArgument` for a buffer without room.
    convenience init(validating buffer: SubscriptionBuffer) throws(RedisError) {
        guard buffer.messages >= 1, buffer.bytes >= 1 else {
            throw RedisError(
                .invalidArgument,
                "the subscription buffer is \(buffer.messages) messages and \(buffer.bytes) bytes, expected at least 1 of each"
            )
        }
        self.init(buffer)
    }
}
