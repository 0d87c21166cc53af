/// The id of a session and the key that signs its calls. Keep it where the system keeps secrets: everybody who
/// has it can read and send as the user until it expires.
public struct GatewaySession: Sendable, Hashable, Codable {
    /// Identifies the session. Not secret.
    public var id: String
    /// The user who has logged in.
    public var user: String
    /// The user's device.
    public var device: String
    /// The key of the signatures. It never travels after the login.
    public var token: String
    /// The end of the session in milliseconds since 1970, by the server's clock. Log in again before
    /// it.
    public var expires: Int
    /// The position that the device had acknowledged at the login.
    public var cursor: String

    /// Creates a session from its parts.
    public init(id: String, user: String, device: String, token: String, expires: Int, cursor: String) {
        self.id = id
        self.user = user
        self.device = device
        self.token = token
        self.expires = expires
        self.cursor = cursor
    }
}

/// The token is in no description, so that no log contains it.
extension GatewaySession: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The session without its token.
    public var description: String { "session \(id) of \(user), device \(device)" }
    /// The session without its token.
    public var debugDescription: String { description }
    /// The session without its token.
    public var customMirror: Mirror {
        Mirror(self, children: ["id": id, "user": user, "device": device, "expires": expires, "cursor": cursor])
    }
}
