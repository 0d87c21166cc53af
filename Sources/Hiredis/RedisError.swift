/// The error of a Redis operation.
///
/// `code` is the kind of the failure. `mayHaveRun` says whether the server may have carried out the
/// command nevertheless: only when it is `false` is it safe to repeat a command that is not
/// idempotent.
///
/// An error never contains a password or an argument of a command.
public struct RedisError: Error, Sendable {
    /// The kind of a failure. New kinds may be added, so a switch over it needs a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String, CaseIterable {
            case invalidArgument, cannotConnect, connectionLost, timedOut, cancelled, clientStopped
            case authenticationFailed, notPermitted, unsupportedServer, wrongType, noScript, serverNotReady, serverError
            case replyTooLarge, protocolViolation, unexpectedReply, tooManyLanes, subscriberTooSlow, outOfMemory,
                readOnly
        }
        private var kind: Kind
        private init(_ kind: Kind) { self.kind = kind }

        /// A value that is not allowed. Nothing was sent.
        public static let invalidArgument = Code(.invalidArgument)
        /// No connection could be made: refused, unknown host, TLS not verified, connect timeout.
        public static let cannotConnect = Code(.cannotConnect)
        /// The connection broke. `mayHaveRun` says whether the command had been sent.
        public static let connectionLost = Code(.connectionLost)
        /// The timeout of the call passed.
        public static let timedOut = Code(.timedOut)
        /// The task was cancelled.
        public static let cancelled = Code(.cancelled)
        /// `RedisClient.run()` has ended, or shutdown has begun.
        public static let clientStopped = Code(.clientStopped)
        /// The server refused the user or the password, or requires them.
        public static let authenticationFailed = Code(.authenticationFailed)
        /// The user's ACL rules forbid the command, a key or a channel. The message names it.
        public static let notPermitted = Code(.notPermitted)
        /// The server is older than 6.2.
        public static let unsupportedServer = Code(.unsupportedServer)
        /// The key holds a value of another type.
        public static let wrongType = Code(.wrongType)
        /// The script is not in the server's cache. ``Redis/script(_:keys:arguments:timeout:)``
        /// handles this and never throws it.
        public static let noScript = Code(.noScript)
        /// The server cannot serve now: it is loading its data, is busy with a script, or is
        /// without its master.
        public static let serverNotReady = Code(.serverNotReady)
        /// The server has reached `maxmemory`.
        public static let outOfMemory = Code(.outOfMemory)
        /// The server is a replica, or cannot write to its disk.
        public static let readOnly = Code(.readOnly)
        /// Any other error reply. The message is the server's text.
        public static let serverError = Code(.serverError)
        /// A reply was larger than the configured limits; the connection has been closed.
        public static let replyTooLarge = Code(.replyTooLarge)
        /// The server sent something that is not RESP2; the connection has been closed.
        public static let protocolViolation = Code(.protocolViolation)
        /// The reply is of a kind that the command does not return.
        public static let unexpectedReply = Code(.unexpectedReply)
        /// ``RedisConfiguration/maxLanes`` blocking commands and dedicated connections are in use.
        public static let tooManyLanes = Code(.tooManyLanes)
        /// A subscriber with the buffer policy `.fail` did not read fast enough.
        public static let subscriberTooSlow = Code(.subscriberTooSlow)

        /// The name of the code.
        public var description: String { kind.rawValue }

        /// All codes, so that tests of a classification or mapping omit none.
        package static var all: [Code] { Kind.allCases.map { Code($0) } }
    }

    /// The kind of the failure.
    public var code: Code
    /// A text that says what happened and, where it helps, what to do.
    public var message: String
    /// Whether the server may have carried out the command.
    public var mayHaveRun: Bool
    /// The name of the command in capitals, without its arguments.
    public var command: String?
    /// The error that caused this one.
    public var underlying: (any Error)?

    /// Makes an error.
    public init(
        _ code: Code, _ message: String, mayHaveRun: Bool = false, command: String? = nil,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.mayHaveRun = mayHaveRun
        self.command = command
        self.underlying = underlying
    }
}

extension RedisError: CustomStringConvertible {
    /// The code, the message and, where the code leaves it open, whether the command may have run.
    public var description: String {
        var text = "\(code): \(message)"
        if let command { text += " [\(command)]" }
        if code == .connectionLost || code == .timedOut || code == .cancelled {
            text += mayHaveRun ? " (the command may have run)" : " (the command has not run)"
        }
        return text
    }
}

extension RedisError {
    /// Makes the error for an error reply, whose first word is its kind in capitals.
    init(serverMessage: String, command: String? = nil) {
        let code = Self.code(of: serverMessage[...])
        self.init(code, Self.withoutArguments(serverMessage), mayHaveRun: false, command: command)
    }

    private static func code(of message: Substring) -> Code {
        switch message.prefix(while: { $0 != " " }) {
        case "WRONGTYPE": .wrongType
        case "NOPERM": .notPermitted
        case "NOAUTH", "WRONGPASS": .authenticationFailed
        case "NOSCRIPT": .noScript
        case "LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN": .serverNotReady
        case "OOM": .outOfMemory
        case "READONLY", "MISCONF", "NOREPLICAS": .readOnly
        // A script's lack of rights has no first word of its own. The first text is that of servers up to 7.0, the
        // second that of 7.2 and later.
        case "ERR" where message.contains("The user executing the script"): .notPermitted
        case "ERR" where message.contains("ACL failure in script"): .notPermitted
        // Up to 6.2, the error of a command in a script comes after the script's own.
        case "ERR" where message.hasPrefix("ERR Error running script"):
            message.firstRange(of: ": -").map { code(of: message[$0.upperBound...]) } ?? .serverError
        default: .serverError
        }
    }

    /// Removes quoted arguments. A server quotes those of an unknown command, and the arguments of
    /// AUTH contain the password.
    static func withoutArguments(_ serverMessage: String) -> String {
        guard serverMessage.hasPrefix("ERR unknown command") else { return serverMessage }
        return String(serverMessage.prefix { $0 != "," })
    }

    /// Returns this error with the name of the command, unless it has one.
    func naming(_ command: String) -> RedisError {
        var copy = self
        copy.command = copy.command ?? command
        return copy
    }
}

extension RedisError {
    /// Makes the error for an error reply among the replies of a pipeline.
    public init(reply message: String) { self.init(serverMessage: message) }
}

extension RESPValue {
    /// Returns this reply, or throws the server's error.
    func orThrow(_ command: String? = nil) throws(RedisError) -> RESPValue {
        if case .error(let message) = self { throw RedisError(serverMessage: message, command: command) }
        return self
    }
}
