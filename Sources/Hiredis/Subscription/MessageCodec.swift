/// Encodes messages as bytes, and decodes them.
public protocol MessageCodec<Message>: Sendable {
    /// The type of the messages.
    associatedtype Message

    /// Encodes a message.
    func encode(_ message: Message) throws -> [UInt8]

    /// Decodes a message.
    func decode(_ bytes: [UInt8]) throws -> Message
}
