import Hiredis

/// What an operation on mailboxes throws.
public struct QueueListenError: Error, Sendable {
    /// The kind of a failure. More kinds may be added: switch over it with a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String {
            case invalidArgument, mailboxFull, conflict, cancelled, superseded, notDurable, unfinished, unsupported,
                undecodable
            case connectionLost, notConnected, notPermitted, wrongType, outOfMemory, serverError, stopped
        }
        private var kind: Kind
        private init(_ kind: Kind) { self.kind = kind }

        /// A value that is not allowed: the message says which and what is expected. Nothing has been sent.
        public static let invalidArgument = Code(.invalidArgument)
        /// A recipient's mailbox has reached its limits and rejects more: the message names it. Nobody got anything.
        public static let mailboxFull = Code(.mailboxFull)
        /// Redis has it otherwise: another number of partitions, or a send id that was used for something else.
        public static let conflict = Code(.conflict)
        /// The task was cancelled.
        public static let cancelled = Code(.cancelled)
        /// Someone else listens to the mailbox as the same device. Thrown by sequences; `listen` returns it as a status.
        public static let superseded = Code(.superseded)
        /// The messages are sent, but the durability that was asked for was not reached in time.
        public static let notDurable = Code(.notDurable)
        /// A send across partitions is written down and not finished: some recipients may have it, all will. Any post office
        /// of the namespace that runs finishes it; the same send with the same id asks how far it is.
        public static let unfinished = Code(.unfinished)
        /// The server cannot do it: the message names the version that can.
        public static let unsupported = Code(.unsupported)
        /// A message's body is not what the caller takes it for.
        public static let undecodable = Code(.undecodable)
        /// The connection broke while the operation was under way; `mayHaveRun` says whether it may have taken effect.
        public static let connectionLost = Code(.connectionLost)
        /// No connection within the deadline, login refused, or the server cannot serve yet. Nothing was carried out.
        public static let notConnected = Code(.notConnected)
        /// The Redis user's ACL rules forbid it: the message is the server's.
        public static let notPermitted = Code(.notPermitted)
        /// A key of ours holds someone else's data: the message names it. It has been left alone.
        public static let wrongType = Code(.wrongType)
        /// Redis has reached `maxmemory`. Nothing has been sent.
        public static let outOfMemory = Code(.outOfMemory)
        /// Any other error reply of the server.
        public static let serverError = Code(.serverError)
        /// The post office or the Redis client has stopped.
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

extension QueueListenError: CustomStringConvertible {
    public var description: String {
        "\(code): \(message)" + (mayHaveRun ? " (the operation may have taken effect)" : "")
    }
}

extension QueueListenError {
    /// The same failure, in the terms of mailboxes.
    init(_ error: any Error) {
        if let error = error as? QueueListenError {
            self = error
            return
        }
        guard let error = error as? RedisError else {
            self.init(.serverError, "\(error)", underlying: error)
            return
        }
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
        self.init(code, error.message, mayHaveRun: error.mayHaveRun, underlying: error)
    }

    /// A refusal that any script may answer, or an answer that none of ours gives.
    init(refusal: RESPValue, partitions: Int) {
        let words = (refusal.array ?? []).map { $0.string ?? "" }
        switch (words.first, words.count) {
        case ("partitions", 2):
            self.init(
                .conflict, "the namespace has \(words[1]) partitions, this post office is configured with \(partitions)"
            )
        case ("foreign", 2): self.init(.wrongType, "the key \(words[1]) holds something else than a mailbox")
        default: self.init(.serverError, "unexpected reply \(refusal)")
        }
    }
}
