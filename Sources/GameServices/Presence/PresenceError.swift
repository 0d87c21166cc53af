import CoordinationBase
import Hiredis

/// The error of an operation on presence.
public struct PresenceError: Error, Sendable {
    /// The kind of an error. Kinds may be added: switch over it with a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String {
            case invalidArgument, lost, superseded, taken, changed, busy, cancelled
            case connectionLost, notConnected, notPermitted, wrongType, outOfMemory, serverError, stopped
        }
        private var kind: Kind
        private init(_ kind: Kind) { self.kind = kind }

        /// An argument is not allowed. The message says which, and what is expected. Nothing was
        /// sent.
        public static let invalidArgument = Code(.invalidArgument)
        /// The session under which the client was connected has ended, because the process was
        /// stopped for too long or Redis has lost data. Connect the client again, if it still is
        /// connected, and put its objects again.
        public static let lost = Code(.lost)
        /// The client has connected again since, at this process or at another one.
        public static let superseded = Code(.superseded)
        /// The key has an object of another user, or `onlyNew` was given and it has an object.
        public static let taken = Code(.taken)
        /// There is no such object, or it does not have the expected version.
        public static let changed = Code(.changed)
        /// The bucket changes so fast that no snapshot could be read.
        public static let busy = Code(.busy)
        /// The task was cancelled.
        public static let cancelled = Code(.cancelled)
        /// The connection broke, or Redis did not answer in time. `mayHaveRun` says whether the
        /// operation may have taken effect.
        public static let connectionLost = Code(.connectionLost)
        /// There was no connection within the timeout, or the login was refused. Nothing was sent.
        public static let notConnected = Code(.notConnected)
        /// The ACL rules of the Redis user forbid the operation. The message is the server's.
        public static let notPermitted = Code(.notPermitted)
        /// A key of the bucket holds data of another program.
        public static let wrongType = Code(.wrongType)
        /// Redis has reached `maxmemory`. Nothing was stored.
        public static let outOfMemory = Code(.outOfMemory)
        /// Any other error reply of the server, or an unexpected reply.
        public static let serverError = Code(.serverError)
        /// ``Presence/run()`` has ended, or the Redis client has stopped.
        public static let stopped = Code(.stopped)

        /// The name of the code, `superseded` for example.
        public var description: String { kind.rawValue }
    }

    /// The kind of the error.
    public var code: Code
    /// A text that says what happened, to which object or bucket, and what to do where that helps.
    public var message: String
    /// Whether the operation may have taken effect although it failed.
    public var mayHaveRun: Bool
    /// The error of the Redis client that caused this one.
    public var underlying: (any Error)?

    /// Creates an error.
    public init(_ code: Code, _ message: String, mayHaveRun: Bool = false, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.mayHaveRun = mayHaveRun
        self.underlying = underlying
    }
}

extension PresenceError.Code: FailureCode {}

extension PresenceError: CustomStringConvertible {
    /// The code, the message, and whether the operation may have taken effect.
    public var description: String {
        "\(code): \(message)" + (mayHaveRun ? " (the operation may have taken effect)" : "")
    }
}

extension PresenceError {
    /// Maps an error of the Redis client to the corresponding code.
    init(_ error: RedisError) {
        self.init(Code(error), error.message, mayHaveRun: error.mayHaveRun, underlying: error)
    }

    /// Creates the error for a reply that the operation does not expect.
    init(unexpected reply: RESPValue) { self.init(.serverError, "unexpected reply: \(reply.form)") }

    /// Whether the same request may succeed in a moment.
    var isTransient: Bool { (underlying as? RedisError)?.isTransient == true }

    /// Returns the error with the failed action in front of its message.
    func prefixed(_ action: String) -> PresenceError {
        var copy = self
        copy.message = "\(action): \(message)"
        return copy
    }
}
