extension Redis {
    /// Encodes and publishes a message, and returns the number of subscribers that receive it.
    ///
    /// - Throws: the codec's error when it cannot encode the message, and ``RedisError`` as
    ///   ``Redis/publish(_:to:)`` does.
    public func publish<Codec: MessageCodec>(
        _ message: Codec.Message, to channel: SubscriptionTopic, with codec: Codec
    ) async throws -> Int {
        try await publish(.bytes(codec.encode(message)), to: channel)
    }

    /// Publishes a message as JSON, and returns the number of subscribers that receive it.
    ///
    /// - Throws: `EncodingError` when the message cannot be encoded, and ``RedisError`` as
    ///   ``Redis/publish(_:to:)`` does.
    public func publish<Message: Codable>(json message: Message, to channel: SubscriptionTopic) async throws -> Int {
        try await publish(message, to: channel, with: JSONMessageCodec())
    }
}
