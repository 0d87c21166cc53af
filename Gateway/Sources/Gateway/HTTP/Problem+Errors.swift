import Hiredis
import Logging
import QueueListen
import RedisDC

extension Problem {
    /// The problem with which an error is answered: the only place that decides what a client learns about it.
    init(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case let error as QueueListenError: self.init(mailbox: error)
        case let error as RedisError: self.init(redis: error)
        case let error as RedisDCError: self.init(coordination: error)
        case let refusal as CallRefusal:
            self.init(.refused, refusal.detail)
            extra = ["reason": .string(refusal.reason)]
        case let failure as CallUnavailable: self = .unavailable(failure.detail, mayHaveRun: failure.mayHaveRun)
        case is CancellationError: self = .unavailable("the node is stopping", mayHaveRun: true)
        default: self.init(.internal, "an internal error")
        }
    }

    /// The problem with which an error is answered. Logs an error whose text the client does not receive.
    init(_ error: any Error, in call: String, _ logger: Logger) {
        self.init(error)
        guard kind == .internal, !(error is Problem) else { return }
        logger.error("a call failed", metadata: ["path": "\(call)", "error": "\(error)"])
    }

    private init(mailbox error: QueueListenError) {
        switch error.code {
        case .invalidArgument: self.init(.malformed, error.message)
        case .mailboxFull: self.init(.mailboxFull, error.message)
        case .conflict: self.init(.idUsed, error.message)
        // The messages of the errors name the server.
        case .connectionLost, .notConnected, .cancelled, .stopped, .unfinished, .notDurable:
            self = .unavailable("Redis cannot be reached", mayHaveRun: error.mayHaveRun)
        case .outOfMemory: self = .unavailable("Redis is out of memory", mayHaveRun: error.mayHaveRun)
        // The others concern the operator, and their messages name keys.
        default: self.init(.internal, "the mailbox operation failed: \(error.code)")
        }
    }

    private init(redis error: RedisError) {
        if error.code == .outOfMemory {
            self = .unavailable("Redis is out of memory", mayHaveRun: error.mayHaveRun)
        } else if error.isTransient || error.code == .clientStopped || error.code == .cancelled {
            self = .unavailable("Redis cannot be reached", mayHaveRun: error.mayHaveRun)
        } else {
            self.init(.internal, "a command failed: \(error.code)")
        }
    }

    private init(coordination error: RedisDCError) {
        switch error.code {
        case .connectionLost, .notConnected, .cancelled, .stopped:
            self = .unavailable("Redis cannot be reached", mayHaveRun: error.mayHaveRun)
        case .outOfMemory: self = .unavailable("Redis is out of memory", mayHaveRun: error.mayHaveRun)
        default: self.init(.internal, "the coordinator failed: \(error.code)")
        }
    }
}
