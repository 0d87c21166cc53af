// Typed messages on top of bytes.
#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Turns messages into bytes and back.
public protocol MessageCodec<Message>: Sendable {
    associatedtype Message
    func encode(_ message: Message) throws -> [UInt8]
    func decode(_ bytes: [UInt8]) throws -> Message
}

/// JSON, for any `Codable` type.
public struct JSONMessageCodec<Message: Codable>: MessageCodec {
    public init(_ type: Message.Type = Message.self) {}

    public func encode(_ message: Message) throws -> [UInt8] { [UInt8](try JSONEncoder().encode(message)) }

    public func decode(_ bytes: [UInt8]) throws -> Message {
        try JSONDecoder().decode(Message.self, from: Data(bytes))
    }
}

/// What a typed subscriber sees.
public enum TypedSubscriptionEvent<Message> {
    case message(Message, from: RedisMessage)
    case gap(SubscriptionGap)
    /// A message of another form. It is handed over and not dropped, and the sequence goes on.
    case undecodable(RedisMessage, any Error)
}

extension TypedSubscriptionEvent: Sendable where Message: Sendable {}

extension Subscription {
    /// The same events with the payloads decoded.
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

    /// The same events with the payloads decoded from JSON.
    public func decoded<Message: Codable>(
        as type: Message.Type
    ) -> AsyncMapSequence<Subscription, TypedSubscriptionEvent<Message>> {
        decoded(with: JSONMessageCodec(type))
    }
}

extension Redis {
    /// Publishes an encoded message, and returns how many receive it.
    public func publish<Codec: MessageCodec>(
        _ message: Codec.Message, to channel: SubscriptionTopic, with codec: Codec
    ) async throws -> Int {
        try await publish(.bytes(codec.encode(message)), to: channel)
    }

    /// Publishes a message as JSON, and returns how many receive it.
    public func publish<Message: Codable>(json message: Message, to channel: SubscriptionTopic) async throws -> Int {
        try await publish(message, to: channel, with: JSONMessageCodec())
    }
}
