import Hiredis

/// What a coordination operation throws.
public struct RedisDCError: Error, Sendable {
    /// The kind of a failure. More kinds may be added: switch over it with a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String {
            case invalidArgument, timedOut, cancelled, destroyed, conflict, connectionLost, notConnected, notPermitted
            case wrongType, outOfMemory, serverError, stopped, lost, notFound, broken
        }
        private var kind: Kind
        private init(_ kind: Kind) { self.kind = kind }

        /// A value that is not allowed: the message says which and what is expected. Nothing has been sent.
        public static let invalidArgument = Code(.invalidArgument)
        /// The time was up. Nothing was acquired.
        public static let timedOut = Code(.timedOut)
        /// The task was cancelled. Nothing was acquired, or it was given back.
        public static let cancelled = Code(.cancelled)
        /// Someone has destroyed the object while we waited for it.
        public static let destroyed = Code(.destroyed)
        /// It is not held any more: the session was lost, or an operator took it away. Somebody else may hold it.
        public static let lost = Code(.lost)
        /// Someone whom a barrier or a latch was counting on has died or given up. It stays so until it is destroyed.
        public static let broken = Code(.broken)
        /// There is no such object, and the call does not say how to make it.
        public static let notFound = Code(.notFound)
        /// The object exists with other settings: the message names both.
        public static let conflict = Code(.conflict)
        /// The connection broke while the operation was under way; `mayHaveRun` says whether it may have taken effect.
        public static let connectionLost = Code(.connectionLost)
        /// No connection within the deadline, login refused, or the server cannot serve yet. Nothing was carried out.
        public static let notConnected = Code(.notConnected)
        /// The Redis user's ACL rules forbid it: the message is the server's.
        public static let notPermitted = Code(.notPermitted)
        /// A key of ours holds someone else's data: the message names it. It has been left alone.
        public static let wrongType = Code(.wrongType)
        /// Redis has reached `maxmemory`. Nothing was carried out.
        public static let outOfMemory = Code(.outOfMemory)
        /// Any other error reply of the server.
        public static let serverError = Code(.serverError)
        /// The Redis client has stopped.
        public static let stopped = Code(.stopped)

        public var description: String { kind.rawValue }
    }

    public var code: Code
    /// One sentence: what happened and, where it helps, what to do.
    public var message: String
    /// Whether the operation may have taken effect although it failed.
    public var mayHaveRun: Bool
    public var underlying: (any Error)?

    public init(_ code: Code, _ message: String, mayHaveRun: Bool = false, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.mayHaveRun = mayHaveRun
        self.underlying = underlying
    }
}

extension RedisDCError: CustomStringConvertible {
    public var description: String {
        "\(code): \(message)" + (mayHaveRun ? " (the operation may have taken effect)" : "")
    }
}

extension RedisDCError {
    /// The same failure, in the terms of coordination.
    init(_ error: RedisError, key: String) {
        let code: Code =
            switch error.code {
            case .invalidArgument: .invalidArgument
            case .timedOut: error.mayHaveRun ? .connectionLost : .notConnected
            case .cancelled: .cancelled
            case .connectionLost: .connectionLost
            case .cannotConnect, .authenticationFailed, .unsupportedServer, .serverNotReady, .tooManyLanes:
                .notConnected
            case .clientStopped: .stopped
            case .notPermitted: .notPermitted
            case .wrongType: .wrongType
            case .outOfMemory: .outOfMemory
            default: .serverError
            }
        let message = code == .wrongType ? "the key \(key) holds something else: \(error.message)" : error.message
        self.init(code, message, mayHaveRun: error.mayHaveRun, underlying: error)
    }
}
