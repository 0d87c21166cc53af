import CoordinationBase
import Hiredis

/// The error of an operation on mailboxes.
public struct QueueListenError: Error, Sendable {
    /// The kind of an error. Kinds may be added: switch over it with a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String {
            case invalidArgument, mailboxFull, tooManyScheduled, conflict, unknownDevice, cancelled, superseded,
                timedOut, failed,
                notDurable, unfinished,
                unsupported, undecodable
            case connectionLost, notConnected, notPermitted, wrongType, outOfMemory, serverError, stopped
        }
        private var kind: Kind
        private init(_ kind: Kind) { self.kind = kind }

        /// An argument is not allowed. The message says which, and what is expected. Nothing was
        /// sent.
        public static let invalidArgument = Code(.invalidArgument)
        /// A recipient's mailbox has reached its limits and rejects the message. The error's
        /// message names the mailbox. No recipient has received anything; `mayHaveRun` says whether
        /// an earlier attempt of the send may still arrive when there is room.
        public static let mailboxFull = Code(.mailboxFull)
        /// As many sends wait to be due later as ``PostOfficeConfiguration/maxScheduledSends``
        /// allows. Nothing was scheduled.
        public static let tooManyScheduled = Code(.tooManyScheduled)
        /// The operation contradicts what Redis has stored: another number of partitions, a send id
        /// that was used for other messages, or a 65th device.
        public static let conflict = Code(.conflict)
        /// The mailbox does not have the device of a reader that was created with `requiresDevice`.
        /// Nothing has changed.
        public static let unknownDevice = Code(.unknownDevice)
        /// The task was cancelled.
        public static let cancelled = Code(.cancelled)
        /// A newer reader listens to the mailbox as the same device. Thrown by sequences and
        /// receivers; `listen` returns it as a status.
        public static let superseded = Code(.superseded)
        /// Nobody has answered a question in time. It may have been handled.
        public static let timedOut = Code(.timedOut)
        /// Whoever handled a question has failed for good. The error's message is the reason.
        public static let failed = Code(.failed)
        /// The messages are sent, but the requested durability was not confirmed in time.
        public static let notDurable = Code(.notDurable)
        /// A cross-partition send is recorded but not finished: some recipients may have the
        /// messages, and all will get them. Any running post office of the namespace finishes it.
        /// Repeating the send with the same id waits for that.
        public static let unfinished = Code(.unfinished)
        /// The server does not support the operation. The message names the version that does.
        public static let unsupported = Code(.unsupported)
        /// A message's body, or a stored cursor, does not have the expected format; or no handler
        /// accepts a message's type.
        public static let undecodable = Code(.undecodable)
        /// The connection broke, or Redis did not answer in time. `mayHaveRun` says whether the
        /// operation may have taken effect.
        public static let connectionLost = Code(.connectionLost)
        /// There was no connection within the timeout, or the login was refused. Nothing was sent.
        public static let notConnected = Code(.notConnected)
        /// The ACL rules of the Redis user forbid the operation. The message is the server's.
        public static let notPermitted = Code(.notPermitted)
        /// A key of a mailbox holds data of another program. The message names the key, which was
        /// not changed.
        public static let wrongType = Code(.wrongType)
        /// Redis has reached `maxmemory`. Nothing was stored.
        public static let outOfMemory = Code(.outOfMemory)
        /// Any other error reply of the server, or an unexpected reply.
        public static let serverError = Code(.serverError)
        /// The post office or the Redis client has stopped.
        public static let stopped = Code(.stopped)

        /// The name of the code, `mailboxFull` for example.
        public var description: String { kind.rawValue }
    }

    /// The kind of the error.
    public var code: Code
    /// A text that says what happened, to which mailbox, and what to do where that helps.
    public var message: String
    /// Whether the operation may have taken effect although it failed.
    public var mayHaveRun: Bool
    /// The error that caused this one: of the Redis client, a decoder or a handler.
    public var underlying: (any Error)?

    /// Creates an error.
    public init(_ code: Code, _ message: String, mayHaveRun: Bool = false, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.mayHaveRun = mayHaveRun
        self.underlying = underlying
    }
}

extension QueueListenError: CodedError {}

extension QueueListenError.Code: FailureCode {}

extension QueueListenError {
    /// Returns whether a stored number of partitions, or the beginning of a mailbox's record, is a possible number of
    /// partitions other than this one. Else it was stored by the first layout.
    private static func isOtherCount(_ stored: String, than partitions: Int) -> Bool {
        guard let count = Int(StoredLayout.parse(stored).partitions) else { return false }
        return (1...1024).contains(count) && count != partitions
    }

    /// Creates the error for a refusal that every script may reply, or for an unexpected reply.
    init(refusal: RESPValue, partitions: Int) {
        let words = (refusal.array ?? []).map { $0.string ?? "" }
        switch (words.first, words.count) {
        case ("partitions", 2) where !Self.isOtherCount(words[1], than: partitions):
            self.init(
                .conflict,
                "the namespace has mailboxes of layout \(StoredLayout.parse(words[1]).version), this version of "
                    + "RedisDC uses layout \(StoredLayout.mailboxVersion): use another namespace, or stop all its nodes, delete "
                    + "its keys and start again")
        case ("partitions", 2):
            let found = StoredLayout.parse(words[1]).partitions
            self.init(
                .conflict,
                "the namespace has \(found) partitions, but this post office is configured with \(partitions): "
                    + "set PostOfficeConfiguration.partitions to \(found)")
        case ("foreign", 2):
            self.init(
                .wrongType,
                "the key \(words[1]) holds data of another program: remove it, or use another namespace")
        case ("devices", 1): self.init(.conflict, Self.tooManyDevices)
        default: self.init(unexpected: refusal)
        }
    }

    private static let tooManyDevices =
        "the mailbox already has the maximum of 64 devices: use one of them, or forget one"
}
