import NIOCore
import TestRandom
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("Encoding of commands")
struct RedisCommandTests {
    private func encode(_ command: RedisCommand) -> [UInt8] {
        var buffer = ByteBuffer()
        buffer.write([command], size: command.encodedSize)
        return Array(buffer.readableBytesView)
    }

    private func text(_ command: RedisCommand) -> String { String(decoding: encode(command), as: UTF8.self) }

    @Test("a command is encoded as an array of bulk strings")
    func exact() {
        #expect(text(["PING"]) == "*1\r\n$4\r\nPING\r\n")
        #expect(text(["SET", "key", 1]) == "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$1\r\n1\r\n")
        #expect(text(["SET", "", ""]) == "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$0\r\n\r\n")
        #expect(text(RedisCommand("ECHO", .bytes([]))) == "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n")
        #expect(text([]) == "*0\r\n")
    }

    @Test(
        "integers, including the extreme ones, are encoded as decimal digits",
        arguments: [
            Int.min, Int.min + 1, -1_000_000, -100, -10, -9, -1, 0, 1, 9, 10, 99, 100, 999_999_999, Int.max - 1,
            Int.max,
        ])
    func integers(value: Int) {
        #expect(text(["X", .integer(value)]) == "*2\r\n$1\r\nX\r\n$\("\(value)".utf8.count)\r\n\(value)\r\n")
    }

    @Test("powers of ten and their neighbours are encoded correctly")
    func powersOfTen() {
        var power = 1
        while power <= Int.max / 10 {
            for value in [power - 1, power, power + 1, -power, -power + 1, -power - 1] {
                #expect(text([.integer(value)]) == "*1\r\n$\("\(value)".utf8.count)\r\n\(value)\r\n")
            }
            power *= 10
        }
    }

    @Test("the length of a string is counted in bytes, not in characters")
    func unicode() {
        #expect(text(["é"]) == "*1\r\n$2\r\né\r\n")
        #expect(text(["☃️👩‍👩‍👧"]) == "*1\r\n$\("☃️👩‍👩‍👧".utf8.count)\r\n☃️👩‍👩‍👧\r\n")
        #expect(text(["a\r\nb\0"]) == "*1\r\n$5\r\na\r\nb\0\r\n")
    }

    @Test("bytes are encoded unchanged")
    func binary() {
        let all = (UInt8.min...UInt8.max).map { $0 }
        #expect(encode(RedisCommand("X", .bytes(all))) == Array("*2\r\n$1\r\nX\r\n$256\r\n".utf8) + all + [13, 10])
    }

    @Test("only the readable part of a buffer is encoded, and the buffer does not change")
    func bufferSlices() {
        var buffer = ByteBuffer(string: "..middle..")
        buffer.moveReaderIndex(forwardBy: 2)
        let slice = buffer.getSlice(at: 2, length: 6)!
        #expect(text([.buffer(slice)]) == "*1\r\n$6\r\nmiddle\r\n")
        #expect(text([.buffer(buffer)]) == "*1\r\n$8\r\nmiddle..\r\n")
        #expect(text([.buffer(ByteBuffer())]) == "*1\r\n$0\r\n\r\n")
        #expect(buffer.readableBytes == 8)
        #expect(slice.readableBytes == 6)
    }

    @Test("a large buffer and the commands after it are encoded completely")
    func largeBuffer() throws {
        // SwiftNIO shares large buffers instead of copying them.
        var large = ByteBuffer(repeating: 9, count: 3 << 20)
        large.moveReaderIndex(forwardBy: 5)
        var buffer = ByteBuffer()
        let commands: [RedisCommand] = [["SET", "k", .buffer(large)], ["PING"]]
        buffer.write(commands, size: commands.encodedSize)
        let replies = try decode([Array(buffer.readableBytesView)])
        #expect(replies.count == 2)
        #expect(replies.first?.array?.last?.bytes?.count == 3 << 20 - 5)
        #expect(replies.last == .array([.bytes(Array("PING".utf8))]))
    }

    @Test("a command is appended to the contents of the buffer")
    func appended() {
        var buffer = ByteBuffer(string: "before")
        let commands: [RedisCommand] = [["A"], ["B", -1]]
        buffer.write(commands, size: commands.encodedSize)
        #expect(String(buffer: buffer) == "before*1\r\n$1\r\nA\r\n*2\r\n$1\r\nB\r\n$2\r\n-1\r\n")
    }

    @Test("decoding random encoded commands returns the same commands", arguments: testSeeds(0..<4))
    func roundTrip(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        for round in 0..<500 {
            let commands = (0..<Int.random(in: 1...4, using: &generator)).map { _ in Self.random(using: &generator) }
            var buffer = ByteBuffer()
            buffer.write(commands, size: commands.encodedSize)
            let expected = commands.map { RESPValue.array($0.arguments.map { .bytes($0.plainBytes) }) }
            let decoded = try decode([Array(buffer.readableBytesView)])
            #expect(decoded == expected, "seed \(seed), round \(round)")
        }
    }

    private static func random(using generator: inout SplitMix) -> RedisCommand {
        RedisCommand(
            (0..<Int.random(in: 1...6, using: &generator)).map { _ in
                let bytes = RESPValue.randomBytes(using: &generator)
                switch generator.next() % 4 {
                case 0: return .bytes(bytes)
                case 1: return .string(String(decoding: bytes, as: UTF8.self))
                case 2:
                    return .integer(
                        Int(truncatingIfNeeded: generator.next()) >> Int.random(in: 0...63, using: &generator))
                default:
                    var buffer = ByteBuffer(bytes: [1, 2, 3] + bytes)
                    buffer.moveReaderIndex(forwardBy: 3)
                    return .buffer(buffer)
                }
            })
    }

    @Test("a command's name is its first word in upper case, and never its arguments")
    func name() {
        #expect(RedisCommand("get", "secret").name == "GET")
        #expect(RedisCommand().name == "?")
        #expect(RedisCommand(.bytes([71, 69, 84]), "secret").name == "?")
    }
}

extension RedisArgument {
    /// The bytes that the server must receive.
    fileprivate var plainBytes: [UInt8] {
        switch self {
        case .string(let text): Array(text.utf8)
        case .bytes(let bytes): bytes
        case .integer(let value): Array("\(value)".utf8)
        case .buffer(let buffer): Array(buffer.readableBytesView)
        }
    }
}
