// The codes that the errors of all libraries above the client share, and the one table that maps the client's errors to them.
package import Hiredis

/// The codes that the errors of all libraries above the client have in common.
package protocol FailureCode: Equatable {
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
