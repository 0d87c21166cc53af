/// The error of a call or of a reader: a code, a message, and whether the call may have taken
/// effect.
public struct GatewayError: Error, Sendable {
    /// The kind of a failure. More codes may be added: switch over it with a `default`.
    ///
    /// A code of the gateway is the word of its problem type: see docs/http.md, "Errors".
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The word, such as `unknown-session`.
        public let description: String

        /// Creates a code from the last word of a problem type.
        public init(_ word: String) { description = word }

        /// The session has expired, was logged out, or never existed: log in.
        public static let unknownSession = Code("unknown-session")
        /// A newer login of the same user and device has replaced the session: ask the user.
        public static let loggedInElsewhere = Code("logged-in-elsewhere")
        /// The application did not accept the credential.
        public static let badCredential = Code("bad-credential")
        /// The signature is not that of the request: the token is not that of the session.
        public static let badSignature = Code("bad-signature")
        /// The request's time is not current, and correcting the clock did not help.
        public static let stale = Code("stale")
        /// The nonce of the request was used before, and that of its repetition too.
        public static let nonceUsed = Code("nonce-used")
        /// The request is not as the gateway expects it: the message says why.
        public static let malformed = Code("malformed")
        /// The application does not allow the call.
        public static let forbidden = Code("forbidden")
        /// The cursor is not, or no longer, in the mailbox.
        public static let cursor = Code("cursor")
        /// The send id was used for other messages or recipients.
        public static let idUsed = Code("id-used")
        /// The application refuses the call: see ``GatewayError/reason``.
        public static let refused = Code("refused")
        /// The messages are larger than the gateway accepts.
        public static let tooLarge = Code("too-large")
        /// The mailbox of a recipient is full. Nothing was sent.
        public static let mailboxFull = Code("mailbox-full")
        /// The session or the account has made too many requests.
        public static let tooManyRequests = Code("too-many-requests")
        /// The session has too many open streams at this node.
        public static let tooManyStreams = Code("too-many-streams")
        /// The gateway cannot reach Redis, or is stopping.
        public static let unavailable = Code("unavailable")
        /// The gateway failed.
        public static let `internal` = Code("internal")
        /// There was no reply: no connection, a broken one, or a timeout.
        public static let network = Code("network")
        /// The reply is not one of a gateway.
        public static let unexpectedReply = Code("protocol")
        /// A message's content could not be encoded or decoded as the type that was asked for.
        public static let invalidContent = Code("invalid-content")
        /// An argument is not allowed. Nothing was sent.
        public static let invalidArgument = Code("invalid-argument")
        /// The task was cancelled.
        public static let cancelled = Code("cancelled")
    }

    /// The kind of the failure.
    public var code: Code
    /// A text that says what happened.
    public var message: String
    /// The HTTP status; `nil` if there was no reply.
    public var status: Int?
    /// The server's time in milliseconds since 1970, with the status 401.
    public var time: Int?
    /// Why the application refuses the call, with the code `.refused`: a word of the application.
    public var reason: String?
    /// The least time after which to try again, if the server has named one.
    public var retryAfter: Duration?
    /// Whether the call may have taken effect. A send can be repeated with the same id.
    public var mayHaveRun: Bool
    /// The error that caused this one.
    public var underlying: (any Error)?

    /// Creates an error.
    public init(
        _ code: Code, _ message: String, status: Int? = nil, mayHaveRun: Bool = false,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.status = status
        self.mayHaveRun = mayHaveRun
        self.underlying = underlying
    }

    /// Whether the same call can succeed later without any change.
    public var isTransient: Bool {
        [.network, .unavailable, .internal, .tooManyRequests, .tooManyStreams].contains(code)
    }

    /// Whether the session is of no further use.
    var endsSession: Bool { code == .unknownSession || code == .loggedInElsewhere }
}

/// The text of an error begins with its code.
extension GatewayError: CustomStringConvertible {
    /// The code, the message, and whether the call may have taken effect.
    public var description: String {
        "\(code): \(message)" + (mayHaveRun ? " (the call may have taken effect)" : "")
    }
}
