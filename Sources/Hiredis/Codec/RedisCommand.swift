/// A command and its arguments: `RedisCommand("SET", "key", "value")` or `["SET", "key", "value"]`.
///
/// Do not send commands that block (`BRPOP`, `BLMOVE`): see ``BlockingCommand``. Do not send
/// commands that change the connection for all callers that share it (`SELECT`, `MULTI`,
/// `SUBSCRIBE`, `CLIENT REPLY`): the client has operations of its own for their purposes.
public struct RedisCommand: Sendable, Hashable, ExpressibleByArrayLiteral {
    /// The name of the command, followed by its arguments.
    public var arguments: [RedisArgument]
    /// Whether the connection counts as dead when the server sends nothing for the command's timeout: see
    /// ``RedisScript/isHeartbeat``.
    var isHeartbeat = false

    /// Makes a command from its name and its arguments.
    public init(_ arguments: RedisArgument...) { self.arguments = arguments }
    /// Makes a command from an array with its name and its arguments.
    public init(_ arguments: [RedisArgument]) { self.arguments = arguments }
    /// Makes a command from an array literal with its name and its arguments.
    public init(arrayLiteral elements: RedisArgument...) { arguments = elements }

    /// The name in capitals, for logs, metrics and errors; `?` when it is not a string. Never an
    /// argument.
    public var name: String {
        if case .string(let name)? = arguments.first { name.uppercased() } else { "?" }
    }
}
