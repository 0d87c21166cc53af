import CoordinationBase
import Hiredis

/// The error of a coordination operation: a code, a message, and whether the operation may have
/// taken effect.
public struct RedisDCError: Error, Sendable {
    /// The kind of a failure. More codes may be added: switch over it with a `default`.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Kind: String {
            case invalidArgument, timedOut, cancelled, destroyed, conflict, connectionLost, notConnected, notPermitted
            case wrongType, outOfMemory, serverError, stopped, lost, notFound, broken, full, empty
            case notDurable, unsupported
        }
        private var kind: Kind
        private init(_ kind: Kind) { self.kind = kind }

        /// An argument is not allowed: the message says which, and what is expected. Nothing was
        /// sent.
        public static let invalidArgument = Code(.invalidArgument)
        /// The timeout has passed. Nothing was acquired, with the exceptions described for
        /// ``cancelled``.
        public static let timedOut = Code(.timedOut)
        /// The ``BoundedBuffer`` had no free place within the timeout. Nothing was put.
        public static let full = Code(.full)
        /// The ``BoundedBuffer`` had no item within the timeout. Nothing was taken.
        public static let empty = Code(.empty)
        /// The task was cancelled.
        ///
        /// A wait has ended with nothing acquired: its claim was released before the error was
        /// thrown. Only when Redis does not answer within 250 ms may the claim still exist; then
        /// its release continues in the background, and at the latest the end of the session frees
        /// it. A party of a barrier, phaser or exchanger may then have passed: `mayHaveRun` is set.
        /// An operation that does not wait was not sent, unless `mayHaveRun` is set.
        public static let cancelled = Code(.cancelled)
        /// The resource was destroyed during the wait, or is being destroyed.
        public static let destroyed = Code(.destroyed)
        /// The lease is no longer held, or the wait has ended, because the session was lost or an
        /// operator released the claim. Another holder may have what was held.
        public static let lost = Code(.lost)
        /// A party that a barrier or latch counted on has died or given up. It stays broken until
        /// it is destroyed.
        public static let broken = Code(.broken)
        /// The resource does not exist, and the handle does not say how to create it.
        public static let notFound = Code(.notFound)
        /// The resource or the namespace exists with other settings, or the resource is of another
        /// kind: the message names both.
        public static let conflict = Code(.conflict)
        /// The connection broke or the session was lost while the request was in flight;
        /// `mayHaveRun` says whether the operation may have taken effect.
        public static let connectionLost = Code(.connectionLost)
        /// There was no connection or no session within the deadline, or the server refused the
        /// login or was not ready. The operation had no effect.
        public static let notConnected = Code(.notConnected)
        /// The ACL rules of the Redis user forbid the operation, or for a wait a request that it
        /// depends on, such as the session's heartbeat: the message is the server's.
        public static let notPermitted = Code(.notPermitted)
        /// A key of the library has a value of another type: the message names the key, which was
        /// not changed.
        public static let wrongType = Code(.wrongType)
        /// Redis has reached `maxmemory`. The operation had no effect, unless `mayHaveRun` is set.
        public static let outOfMemory = Code(.outOfMemory)
        /// The operation has taken effect, but was not confirmed to be as durable as requested within the time. The
        /// message says whether a lease is still held.
        public static let notDurable = Code(.notDurable)
        /// The server cannot do what was requested: the message says what it needs. Nothing was changed.
        public static let unsupported = Code(.unsupported)
        /// The server replied with another error, or with an unexpected value.
        public static let serverError = Code(.serverError)
        /// The Redis client or the coordinator has stopped, or is stopping.
        public static let stopped = Code(.stopped)

        /// The name of the code, such as `timedOut`.
        public var description: String { kind.rawValue }
    }

    /// The kind of the failure.
    public var code: Code
    /// A text that says what happened, to which resource, and what to do.
    public var message: String
    /// Whether the operation may have taken effect although it failed.
    public var mayHaveRun: Bool
    /// The error that caused this one, such as the Redis client's.
    public var underlying: (any Error)?

    /// Creates an error.
    public init(_ code: Code, _ message: String, mayHaveRun: Bool = false, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.mayHaveRun = mayHaveRun
        self.underlying = underlying
    }
}

extension RedisDCError: CodedError {}

extension RedisDCError.Code: FailureCode {}

extension RedisDCError {
    /// Translates an error of the Redis client.
    ///
    /// - Parameter key: the key that a message about a wrong type names.
    init(_ error: RedisError, key: String) {
        let code = Code(error)
        let message =
            code == .wrongType ? "the key \(key) has a value of another type: \(error.message)" : error.message
        self.init(code, message, mayHaveRun: error.mayHaveRun, underlying: error)
    }
}
