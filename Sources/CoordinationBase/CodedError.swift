// The form that the errors of all libraries above the client share, and the one table that maps the client's errors to it.
package import Hiredis

/// An error with a code, a message, and whether the operation may have taken effect.
package protocol CodedError: Error, CustomStringConvertible {
    associatedtype Code: FailureCode, CustomStringConvertible
    var code: Code { get set }
    var message: String { get set }
    var mayHaveRun: Bool { get set }
    var underlying: (any Error)? { get set }
    init(_ code: Code, _ message: String, mayHaveRun: Bool, underlying: (any Error)?)
}

/// The codes that all these errors have.
package protocol FailureCode: Hashable, Sendable {
    static var invalidArgument: Self { get }
    static var cancelled: Self { get }
    static var connectionLost: Self { get }
    static var notConnected: Self { get }
    static var notPermitted: Self { get }
    static var wrongType: Self { get }
    static var outOfMemory: Self { get }
    static var serverError: Self { get }
    static var stopped: Self { get }
}

extension CodedError {
    /// The code, the message, and whether the operation may have taken effect.
    public var description: String {
        "\(code): \(message)" + (mayHaveRun ? " (the operation may have taken effect)" : "")
    }

    /// Maps an error of the Redis client to the corresponding code.
    package init(_ error: RedisError) {
        self.init(Code(error), error.message, mayHaveRun: error.mayHaveRun, underlying: error)
    }

    /// Maps any error to the corresponding code.
    package init(_ error: any Error) {
        switch error {
        case let error as Self: self = error
        case let error as RedisError: self.init(error)
        default: self.init(.serverError, "\(error)", mayHaveRun: false, underlying: error)
        }
    }

    /// Creates the error for a reply that the operation does not expect.
    package init(unexpected reply: RESPValue) {
        self.init(.serverError, "unexpected reply: \(reply.form)", mayHaveRun: false, underlying: nil)
    }

    /// Whether the same request may succeed in a moment.
    package var isTransient: Bool { (underlying as? RedisError)?.isTransient == true }

    /// Returns the error with the failed action in front of its message.
    package func prefixed(_ action: String) -> Self {
        var copy = self
        copy.message = "\(action): \(message)"
        return copy
    }
}

extension FailureCode {
    /// The code for an error of the Redis client.
    package init(_ error: RedisError) {
        self =
            switch error.code {
            case .invalidArgument: .invalidArgument
            case .timedOut: error.mayHaveRun ? .connectionLost : .notConnected
            case .cancelled: .cancelled
            case .connectionLost: .connectionLost
            // A server that refuses writes is not the master that the client needs.
            case .cannotConnect, .authenticationFailed, .unsupportedServer, .serverNotReady, .tooManyLanes, .readOnly:
                .notConnected
            case .clientStopped: .stopped
            case .notPermitted: .notPermitted
            case .wrongType: .wrongType
            case .outOfMemory: .outOfMemory
            default: .serverError
            }
    }
}
