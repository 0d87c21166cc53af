// The byte-safe encoding of commands into the outgoing buffer.
import NIOCore

extension ByteBuffer {
    /// Appends commands.
    ///
    /// - Parameter size: their ``encodedSize``, so that they are written in one piece.
    mutating func write(_ commands: some Collection<RedisCommand>, size: Int) {
        writeWithUnsafeMutableBytes(minimumWritableBytes: size) { commands.encode(into: $0) }
    }
}

extension Collection<RedisCommand> {
    /// The number of bytes of all commands on the wire.
    var encodedSize: Int { reduce(0) { $0 + $1.encodedSize } }

    /// Writes each command as an array of bulk strings, and returns the number of bytes.
    ///
    /// - Parameter target: at least ``encodedSize`` bytes.
    func encode(into target: UnsafeMutableRawBufferPointer) -> Int {
        var writer = CommandWriter(target: target)
        for command in self {
            writer.writeHeader(UInt8(ascii: "*"), command.arguments.count)
            for argument in command.arguments { writer.write(argument) }
        }
        assert(writer.position == encodedSize)
        return writer.position
    }
}

extension RedisCommand {
    /// The number of bytes of the command on the wire.
    var encodedSize: Int {
        arguments.reduce(headerSize(arguments.count)) { size, argument in
            let count = argument.byteCount
            return size + headerSize(count) + count + 2
        }
    }
}

private struct CommandWriter {
    let target: UnsafeMutableRawBufferPointer
    var position = 0

    mutating func write(_ argument: RedisArgument) {
        writeHeader(UInt8(ascii: "$"), argument.byteCount)
        switch argument {
        case .string(var text): text.withUTF8 { copy(UnsafeRawBufferPointer($0)) }
        case .bytes(let bytes): bytes.withUnsafeBytes { copy($0) }
        case .buffer(let buffer): buffer.withUnsafeReadableBytes { copy($0) }
        case .integer(let value): writeDecimal(value)
        }
        writeLineEnd()
    }

    mutating func writeHeader(_ type: UInt8, _ count: Int) {
        target[position] = type
        position += 1
        writeDecimal(count)
        writeLineEnd()
    }

    private mutating func writeLineEnd() {
        target[position] = UInt8(ascii: "\r")
        target[position + 1] = UInt8(ascii: "\n")
        position += 2
    }

    private mutating func writeDecimal(_ value: Int) {
        let end = position + decimalLength(value)
        var rest = value.magnitude
        var digit = end
        repeat {
            digit -= 1
            target[digit] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        if value < 0 { target[position] = UInt8(ascii: "-") }
        position = end
    }

    private mutating func copy(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        UnsafeMutableRawBufferPointer(rebasing: target[position...]).baseAddress!
            .copyMemory(from: source, byteCount: bytes.count)
        position += bytes.count
    }
}

extension RedisArgument {
    fileprivate var byteCount: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .buffer(let buffer): buffer.readableBytes
        case .integer(let value): decimalLength(value)
        }
    }
}

/// The size of a type byte, a decimal number, CR and LF.
private func headerSize(_ count: Int) -> Int { 3 + decimalLength(count) }

private func decimalLength(_ value: Int) -> Int {
    var length = value < 0 ? 2 : 1
    var rest = value.magnitude
    while rest >= 10 {
        length += 1
        rest /= 10
    }
    return length
}
