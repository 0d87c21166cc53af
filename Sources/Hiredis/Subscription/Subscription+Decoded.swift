extension Subscription {
    /// Returns the same events with their payloads decoded.
    public func decoded<Codec: MessageCodec>(
        with codec: Codec
    ) -> AsyncMapSequence<Subscription, TypedSubscriptionEvent<Codec.Message>> {
        map { event in
            switch event {
            case .gap(let gap): return .gap(gap)
            case .message(let raw):
                do { return .message(try codec.decode(raw.payload), from: raw) } catch {
                    return .undecodable(raw, error)
                }
            }
        }
    }

    /// Returns the same events with their payloads decoded from JSON.
    public func decoded<Message: Codable>(
        as type: Message.Type
    ) -> AsyncMapSequence<Subscription, TypedSubscriptionEvent<Message>> {
        decoded(with: JSONMessageCodec(type))
    }
}

/// An event of a subscription whose messages are decoded.
public enum TypedSubscriptionEvent<Message> {
    /// A decoded message, and the message that it was decoded from.
    case message(Message, from: RedisMessage)
    /// Messages may be missing here: see ``SubscriptionEvent/gap(_:)``.
    case gap(SubscriptionGap)
    /// A message that cannot be decoded, and the codec's error. The sequence continues.
    case undecodable(RedisMessage, any Error)
}

extension TypedSubscriptionEvent: Sendable where Message: Sendable {}
