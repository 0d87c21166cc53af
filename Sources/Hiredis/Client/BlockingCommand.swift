/// A command that waits on the server until it has something to return, such as `BRPOP`, `BLMOVE`
/// or `BZPOPMIN`.
///
/// Leave out the command's timeout argument: the client adds it.
public struct BlockingCommand: Sendable {
    /// The position of a command's timeout argument.
    public enum TimeoutPosition: Sendable {
        /// After all other arguments, as in `BRPOP key timeout`.
        case last
        /// Directly after the name, as in `BLMPOP timeout numkeys key …`.
        case first
    }

    /// The command without its timeout argument.
    public var command: RedisCommand
    /// The position at which the client inserts the timeout argument.
    public var timeoutPosition: TimeoutPosition

    /// Makes a blocking command from a command without its timeout argument.
    public init(_ command: RedisCommand, timeout position: TimeoutPosition = .last) {
        self.command = command
        timeoutPosition = position
    }

    /// Removes the last element of the first of these lists that is not empty. The reply is the
    /// list's name and the element.
    public static func brpop(_ keys: String...) -> BlockingCommand {
        BlockingCommand(RedisCommand([.string("BRPOP")] + keys.map { .string($0) }))
    }

    /// Removes the first element of the first of these lists that is not empty. The reply is the
    /// list's name and the element.
    public static func blpop(_ keys: String...) -> BlockingCommand {
        BlockingCommand(RedisCommand([.string("BLPOP")] + keys.map { .string($0) }))
    }

    /// Returns the command as it is sent. With `nil` it waits without a limit.
    func complete(serverTimeout: Duration?) -> RedisCommand {
        let timeout = RedisArgument.string(serverTimeout.map(Self.seconds) ?? "0")
        var complete = command
        switch timeoutPosition {
        case .last: complete.arguments.append(timeout)
        case .first: complete.arguments.insert(timeout, at: 1)
        }
        return complete
    }

    /// Returns decimal seconds, rounded up to whole milliseconds and at least one: 0 would wait
    /// without a limit.
    static func seconds(_ duration: Duration) -> String {
        let milliseconds = max(1, duration.millisecondsRoundedUp)
        let fraction = String(milliseconds % 1000)
        return "\(milliseconds / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
    }
}
