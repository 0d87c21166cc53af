import CoordinationBase
import Hiredis

/// The error of an operation on presence, a leaderboard or a matchmaker.
public struct GameServiceError: Error, Sendable {
    /// The kind of an error. Kinds may be added: switch over it with a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String {
            case invalidArgument, conflict, outOfRange, notFound, lost, superseded, taken, changed, busy, cancelled
            case connectionLost, notConnected, notPermitted, wrongType, outOfMemory, serverError, stopped
        }
        private var kind: Kind
        private init(_ kind: Kind) { self.kind = kind }

        /// An argument is not allowed. The message says which, and what is expected. Nothing was
        /// sent.
        public static let invalidArgument = Code(.invalidArgument)
        /// The operation contradicts what Redis has stored: other rules, an identifier that was used
        /// for something else, or a player who already waits with another ticket.
        public static let conflict = Code(.conflict)
        /// A sum would leave the range of scores, ±2^53. Nothing was stored.
        public static let outOfRange = Code(.outOfRange)
        /// There is no such ticket, or it ended too long ago.
        public static let notFound = Code(.notFound)
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
        /// A key of the service holds data of another program. Nothing was stored.
        public static let wrongType = Code(.wrongType)
        /// Redis has reached `maxmemory`. Nothing was stored.
        public static let outOfMemory = Code(.outOfMemory)
        /// Any other error reply of the server, or an unexpected reply.
        public static let serverError = Code(.serverError)
        /// ``Presence/run()`` has ended, or the Redis client has stopped.
        public static let stopped = Code(.stopped)

        /// The name of the code, `outOfRange` for example.
        public var description: String { kind.rawValue }
    }

    /// The kind of the error.
    public var code: Code
    /// A text that says what happened, to which object, leaderboard or matchmaker, and what to do
    /// where that helps.
    public var message: String
    /// Whether the operation may have taken effect although it failed.
    public var mayHaveRun: Bool
    /// The error that caused this one.
    public var underlying: (any Error)?

    /// Creates an error.
    public init(_ code: Code, _ message: String, mayHaveRun: Bool = false, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.mayHaveRun = mayHaveRun
        self.underlying = underlying
    }
}

extension GameServiceError: CodedError {}

extension GameServiceError.Code: FailureCode {}
