// The exit statuses of the command-line tools, and the errors that map to them.
import Hiredis
import RedisDC

/// An exit status of a tool: those of `sysexits.h` and of POSIX shells.
package enum ExitStatus: Int32, Sendable {
    /// The command line is wrong.
    case usage = 64
    /// A name or value is invalid, or does not fit what is in Redis.
    case badData = 65
    /// Redis cannot be reached.
    case unavailable = 69
    /// Any other failure.
    case software = 70
    /// The output cannot be written.
    case outputFailed = 73
    /// A lease was lost while it was held.
    case lost = 74
    /// The operation timed out, or its resource was destroyed or broken.
    case notAcquired = 75
    /// The Redis user lacks a right.
    case notPermitted = 77
    /// A program exists but cannot be executed.
    case cannotRun = 126
    /// A program does not exist.
    case noProgram = 127
    /// SIGINT or SIGTERM ended the command.
    case interrupted = 130
    /// The reader of the output has gone: 128 plus the number of SIGPIPE.
    case readerGone = 141
}

/// An error that ends a tool with one sentence on standard error and an exit status.
package protocol ExitError: Error {
    var exitStatus: ExitStatus { get }
    /// The sentence; empty to write none.
    var message: String { get }
}

/// A failure that a tool itself detects.
package struct Failure: ExitError {
    package var exitStatus: ExitStatus
    package var message: String

    package init(_ exitStatus: ExitStatus, _ message: String) {
        (self.exitStatus, self.message) = (exitStatus, message)
    }
}

extension RedisDCError: ExitError {
    package var exitStatus: ExitStatus {
        switch code {
        case .invalidArgument, .conflict, .notFound, .wrongType, .unsupported: .badData
        case .timedOut, .full, .empty, .destroyed, .broken, .notDurable: .notAcquired
        case .lost: .lost
        case .connectionLost, .notConnected, .stopped: .unavailable
        case .notPermitted: .notPermitted
        case .cancelled: .interrupted
        default: .software
        }
    }
}

extension RedisError: ExitError {
    package var exitStatus: ExitStatus {
        switch code {
        case .invalidArgument, .wrongType: .badData
        case .cannotConnect, .connectionLost, .timedOut, .clientStopped, .serverNotReady, .unsupportedServer:
            .unavailable
        case .authenticationFailed, .notPermitted: .notPermitted
        case .cancelled: .interrupted
        default: .software
        }
    }
}

/// The exit status of a child as shells report it: its own, or 128 plus the number of the signal
/// that ended it.
///
/// - Parameter status: the status that `waitpid` has stored.
package func shellStatus(_ status: Int32) -> Int32 {
    let signal = status & 0x7f
    return signal == 0 ? status >> 8 & 0xff : 128 + signal
}
