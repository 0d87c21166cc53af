#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Encodes messages of any `Codable` type as JSON.
public struct JSONMessageCodec<Message: Codable>: MessageCodec {
    /// Makes a codec for a type.
    public init(_ type: Message.Type = Message.self) {}

    /// Encodes a message as JSON.
    public func encode(_ message: Message) throws -> [UInt8] { [UInt8](try JSONEncoder().encode(message)) }

    /// Decodes a message from JSON.
    public func decode(_ bytes: [UInt8]) throws -> Message {
        try JSONDecoder().decode(Message.self, from: Data(bytes))
    }
}
