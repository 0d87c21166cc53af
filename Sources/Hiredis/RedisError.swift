/// What a Redis operation throws.
///
/// The `code` says what kind of failure it was, `mayHaveRun` whether the server may have carried the command out
/// all the same. Only when it is `false` is it safe to send a command again that is not idempotent.
///
/// No password and no argument of a command is ever part of an error.
public struct RedisError: Error, Sendable {
    /// The kind of a failure. More kinds may be added: switch over it with a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String, CaseIterable {
            case invalidArgument, cannotConnect, connectionLost, timedOut, cancelled, clientStopped
            case authenticationFailed, notPermitted, unsupportedServer, wrongType, noScript, serverNotReady, serverError
            case replyTooLarge, protocolViolation, unexpectedReply, tooManyLanes, subscriberTooSlow, outOfMemory,
                readOnly
        }
        private var kind: Kind
        private init(_ kind: Kind) { self.kind = kind }

        /// A value that cannot be sent: nothing has been sent.
        public static let invalidArgument = Code(.invalidArgument)
        /// No connection could be made (refused, unknown host, TLS not verified, connect timeout).
        public static let cannotConnect = Code(.cannotConnect)
        /// The connection broke. `mayHaveRun` says whether the command was on its way.
        public static let connectionLost = Code(.connectionLost)
        /// The call's own deadline passed.
        public static let timedOut = Code(.timedOut)
        /// The task was cancelled.
        public static let cancelled = Code(.cancelled)
        /// `RedisClient.run()` has ended, or shutdown has begun.
        public static let clientStopped = Code(.clientStopped)
        /// The server refused user or password, or wants them.
        public static let authenticationFailed = Code(.authenticationFailed)
        /// The user's ACL rules forbid the command, a key or a channel: the message names it.
        public static let notPermitted = Code(.notPermitted)
        /// The server is older than 6.2.
        public static let unsupportedServer = Code(.unsupportedServer)
        /// The key holds a value of another type.
        public static let wrongType = Code(.wrongType)
        /// The script is not in the server's cache. `script(_:keys:arguments:)` handles it and never throws it.
        public static let noScript = Code(.noScript)
        /// The server cannot serve yet: loading its data, busy with a script, or without its master.
        public static let serverNotReady = Code(.serverNotReady)
        /// The server has reached `maxmemory`.
        public static let outOfMemory = Code(.outOfMemory)
        /// The server is a replica, or cannot write to its disk.
        public static let readOnly = Code(.readOnly)
        /// Any other error reply: the message is the server's text.
        public static let serverError = Code(.serverError)
        /// A reply was larger than the configured limits; the connection has been closed.
        public static let replyTooLarge = Code(.replyTooLarge)
        /// What came is not RESP2; the connection has been closed.
        public static let protocolViolation = Code(.protocolViolation)
        /// The reply is of another kind than the command gives.
        public static let unexpectedReply = Code(.unexpectedReply)
        /// As many blocking commands wait as `Configuration.maxLanes` allows.
        public static let tooManyLanes = Code(.tooManyLanes)
        /// A subscriber with the buffer policy `.fail` did not read fast enough.
        public static let subscriberTooSlow = Code(.subscriberTooSlow)

        public var description: String { kind.rawValue }

        /// Every code there is, so that tests of a classification or mapping leave none out.
        package static var all: [Code] { Kind.allCases.map { Code($0) } }
    }

    public var code: Code
    /// One sentence: what happened and, where it helps, what to do.
    public var message: String
    /// Whether the server may have carried the command out.
    public var mayHaveRun: Bool
    /// The name of the command in capitals, never its arguments.
    public var command: String?
    public var underlying: (any Error)?

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
    /// The error that an error reply stands for. Redis puts its kind in front, in capitals.
    init(serverMessage: String, command: String? = nil) {
        let kind = serverMessage.prefix { $0 != " " }
        let code: Code =
            switch kind {
            case "WRONGTYPE": .wrongType
            case "NOPERM": .notPermitted
            case "NOAUTH", "WRONGPASS": .authenticationFailed
            case "NOSCRIPT": .noScript
            case "LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN": .serverNotReady
            case "OOM": .outOfMemory
            case "READONLY", "MISCONF", "NOREPLICAS": .readOnly
            // What a script may not do is refused without a word of its own: until 7.0 so, from 7.2 so.
            case "ERR" where serverMessage.contains("The user executing the script"): .notPermitted
            case "ERR" where serverMessage.contains("ACL failure in script"): .notPermitted
            default: .serverError
            }
        self.init(code, Self.withoutArguments(serverMessage), mayHaveRun: false, command: command)
    }

    /// A server that does not know a command quotes its arguments, and those of AUTH hold the password.
    static func withoutArguments(_ serverMessage: String) -> String {
        guard serverMessage.hasPrefix("ERR unknown command") else { return serverMessage }
        return String(serverMessage.prefix { $0 != "," })
    }

    func naming(_ command: String) -> RedisError {
        var copy = self
        copy.command = copy.command ?? command
        return copy
    }
}

extension RedisError {
    /// The error that an error reply of a pipeline stands for.
    public init(reply message: String) { self.init(serverMessage: message) }
}

extension RESPValue {
    /// This reply, or the server's error thrown.
    func orThrow(_ command: String? = nil) throws(RedisError) -> RESPValue {
        if case .error(let message) = self { throw RedisError(serverMessage: message, command: command) }
        return self
    }
}
