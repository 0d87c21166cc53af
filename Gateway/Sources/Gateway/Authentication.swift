/// A login: what a client presents to begin a session.
public struct Login: Sendable {
    /// The user that the client claims to be. The gateway has checked the name's form.
    public var user: String
    /// The client's device.
    public var device: String
    /// The credential as JSON text, any value.
    public var credential: [UInt8]
    /// The client's address, if it is known.
    public var address: String?

    /// Creates a login.
    public init(user: String, device: String, credential: [UInt8], address: String? = nil) {
        self.user = user
        self.device = device
        self.credential = credential
        self.address = address
    }

    /// The credential if it is a JSON text: `"…"`.
    public var credentialText: String? { (try? JSONParser.parse(credential))?.string }
}

/// Decides who may log in. An application has one of its own.
public protocol Authenticator: Sendable {
    /// Returns whether the credential proves that the client is the user.
    ///
    /// - Throws: any error if it cannot decide at present: the client gets 503, and tries again.
    func authenticate(_ login: Login) async throws -> Bool
}

/// A send that a user asks for, on which the application decides.
public struct SendAttempt: Sendable {
    /// The user, as the gateway has authenticated it.
    public var sender: String
    /// The sender's device.
    public var device: String
    /// The mailboxes that would receive the messages.
    public var recipients: [String]
    /// The type of each message.
    public var types: [String?]
}

/// Decides which user may send to which mailboxes. By default nobody may send.
public typealias SendAuthorization = @Sendable (SendAttempt) async throws -> Bool
