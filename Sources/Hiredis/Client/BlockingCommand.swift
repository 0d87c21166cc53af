/// A command that waits on the server until there is something to return: `BRPOP`, `BLMOVE`, `BZPOPMIN` and their like.
///
/// The client adds the server's timeout; leave it out.
public struct BlockingCommand: Sendable {
    public enum TimeoutPosition: Sendable {
        /// After all other arguments, as in `BRPOP key timeout`.
        case last
        /// Right after the name, as in `BLMPOP timeout numkeys key …`.
        case first
    }

    public var command: RedisCommand
    public var timeoutPosition: TimeoutPosition

    public init(_ command: RedisCommand, timeout position: TimeoutPosition = .last) {
        self.command = command
        timeoutPosition = position
    }

    /// Takes the last element of the first of these lists that has one; the reply is the list's name and the element.
    public static func brpop(_ keys: String...) -> BlockingCommand {
        BlockingCommand(RedisCommand([.string("BRPOP")] + keys.map { .string($0) }))
    }

    /// Takes the first element of the first of these lists that has one; the reply is the list's name and the element.
    public static func blpop(_ keys: String...) -> BlockingCommand {
        BlockingCommand(RedisCommand([.string("BLPOP")] + keys.map { .string($0) }))
    }

    /// The command as it is sent. `nil` blocks for ever.
    func complete(serverTimeout: Duration?) -> RedisCommand {
        let timeout = RedisArgument.string(serverTimeout.map(Self.seconds) ?? "0")
        var complete = command
        switch timeoutPosition {
        case .last: complete.arguments.append(timeout)
        case .first: complete.arguments.insert(timeout, at: 1)
        }
        return complete
    }

    /// Decimal seconds, rounded up to the next millisecond: 0 would mean for ever.
    static func seconds(_ duration: Duration) -> String {
        let milliseconds = max(1, duration.millisecondsRoundedUp)
        let fraction = String(milliseconds % 1000)
        return "\(milliseconds / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
    }
}
