/// A value that travels as the JSON content of messages of one type.
///
/// ```swift
/// struct Move: GatewayPayload {
///     static let messageType = "move"
///     var from: String
///     var to: String
/// }
/// ```
public protocol GatewayPayload: Codable, Sendable {
    /// The type of the messages. It is part of the protocol between senders and receivers, and must
    /// not change when the Swift type is renamed. At most 255 bytes.
    static var messageType: String { get }
}
