/// A published message.
public struct RedisMessage: Sendable, Hashable {
    /// The channel to which it was published.
    public var channel: String
    /// The topic of the subscription that it matched.
    public var topic: SubscriptionTopic
    /// The bytes of the message.
    public var payload: [UInt8]

    /// Makes a message, for tests.
    public init(channel: String, topic: SubscriptionTopic, payload: [UInt8]) {
        self.channel = channel
        self.topic = topic
        self.payload = payload
    }

    /// The payload as text. Bytes that are not UTF-8 become replacement characters.
    public var text: String { String(decoding: payload, as: UTF8.self) }
}
