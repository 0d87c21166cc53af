// Errors to one sentence on standard error and a sysexits status.
import ArgumentParser
import Foundation
import Hiredis
import QueueListen
import RedisDC

enum Status: Int32 {
    case usage = 64
    case badData = 65
    case unavailable = 69
    case software = 70
    case lost = 74
    case notAcquired = 75
    case notPermitted = 77
    // As shells say it.
    case cannotRun = 126
    case noProgram = 127
    case interrupted = 130
}

/// A failure of the tool itself.
struct Failure: Error {
    var status: Status
    var message: String

    init(_ status: Status, _ message: String) {
        self.status = status
        self.message = message
    }

    static func exit(_ error: any Error) -> Never {
        switch error {
        case let failure as Failure: leave(failure.status, failure.message)
        case let error as RedisDCError: leave(Status(error.code), error.message)
        case let error as QueueListenError: leave(Status(error.code), error.message)
        case let error as RedisError: leave(Status(error.code), error.message)
        default: Tool.exit(withError: error)
        }
    }

    private static func leave(_ status: Status, _ message: String) -> Never {
        FileHandle.standardError.write(Data("redisdc: \(message)\n".utf8))
        Foundation.exit(status.rawValue)
    }
}

extension Status {
    init(_ code: RedisDCError.Code) {
        switch code {
        case .invalidArgument, .conflict, .notFound, .wrongType: self = .badData
        case .timedOut, .destroyed: self = .notAcquired
        case .lost: self = .lost
        case .connectionLost, .notConnected, .stopped: self = .unavailable
        case .notPermitted: self = .notPermitted
        case .cancelled: self = .interrupted
        default: self = .software
        }
    }

    init(_ code: RedisError.Code) {
        switch code {
        case .invalidArgument, .wrongType: self = .badData
        case .cannotConnect, .connectionLost, .timedOut, .clientStopped, .serverNotReady, .unsupportedServer:
            self = .unavailable
        case .authenticationFailed, .notPermitted: self = .notPermitted
        case .cancelled: self = .interrupted
        default: self = .software
        }
    }
}
