// Commands as callers write them, and their byte-safe encoding into the outgoing buffer.
public import NIOCore

/// One argument of a command. Literals work: `["SET", "key", 1]`. Bytes are sent as they are, whatever they contain.
public enum RedisArgument: Sendable, Hashable {
    case string(String)
    case bytes([UInt8])
    case integer(Int)
    case buffer(ByteBuffer)
}

extension RedisArgument: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral {
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .integer(value) }
    public init(_ value: String) { self = .string(value) }
    public init(_ value: [UInt8]) { self = .bytes(value) }
    public init(_ value: Int) { self = .integer(value) }
}

/// A command and its arguments: `RedisCommand("SET", "key", "value")` or `["SET", "key", "value"]`.
///
/// A blocking command (`BRPOP`, `BLMOVE`, …) belongs on a lane: see ``BlockingCommand``. So do no commands that change
/// the connection for everyone on it (`SELECT`, `MULTI`, `SUBSCRIBE`, `CLIENT REPLY`): use what the client offers for
/// them.
public struct RedisCommand: Sendable, Hashable, ExpressibleByArrayLiteral {
    public var arguments: [RedisArgument]

    public init(_ arguments: RedisArgument...) { self.arguments = arguments }
    public init(_ arguments: [RedisArgument]) { self.arguments = arguments }
    public init(arrayLiteral elements: RedisArgument...) { arguments = elements }

    /// The command's name in capitals, for logs, metrics and errors. Never an argument.
    public var name: String {
        if case .string(let name)? = arguments.first { name.uppercased() } else { "?" }
    }
}

extension ByteBuffer {
    /// Appends the command as an array of bulk strings.
    mutating func writeCommand(_ command: RedisCommand) {
        writeHeader(UInt8(ascii: "*"), command.arguments.count)
        for argument in command.arguments { writeArgument(argument) }
    }

    private mutating func writeArgument(_ argument: RedisArgument) {
        switch argument {
        case .string(let text):
            writeHeader(UInt8(ascii: "$"), text.utf8.count)
            writeString(text)
        case .bytes(let bytes):
            writeHeader(UInt8(ascii: "$"), bytes.count)
            writeBytes(bytes)
        case .buffer(let buffer):
            writeHeader(UInt8(ascii: "$"), buffer.readableBytes)
            writeImmutableBuffer(buffer)
        case .integer(let value):
            writeHeader(UInt8(ascii: "$"), decimalLength(value))
            writeDecimal(value)
        }
        writeInteger(0x0D0A as UInt16)
    }

    private mutating func writeHeader(_ type: UInt8, _ count: Int) {
        writeInteger(type)
        writeDecimal(count)
        writeInteger(0x0D0A as UInt16)
    }

    private mutating func writeDecimal(_ value: Int) {
        let length = decimalLength(value)
        writeWithUnsafeMutableBytes(minimumWritableBytes: length) { target in
            var rest = value.magnitude
            var position = length
            repeat {
                position -= 1
                target[position] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            if value < 0 { target[0] = UInt8(ascii: "-") }
            return length
        }
    }
}

private func decimalLength(_ value: Int) -> Int {
    var length = value < 0 ? 2 : 1
    var rest = value.magnitude
    while rest >= 10 {
        length += 1
        rest /= 10
    }
    return length
}
