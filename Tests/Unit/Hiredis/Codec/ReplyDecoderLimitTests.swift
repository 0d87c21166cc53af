import Testing

@testable import Hiredis
@testable import HiredisTestSupport

#if os(Linux)
    import Foundation
#endif

@Suite("Limits of the decoder")
struct ReplyDecoderLimitTests {
    // MARK: Bytes

    @Test("a reply of exactly the byte limit is decoded, and one byte more is refused, in any pieces")
    func bytes() throws {
        let wire = RESPValue.bytes([UInt8](repeating: 7, count: 2000)).wire
        for size in [1, 7, 1000, wire.count - 1, wire.count] {
            let pieces = stride(from: 0, to: wire.count, by: size).map { Array(wire[$0..<min($0 + size, wire.count)]) }
            let exact = try decode(pieces, limits: ReplyLimits(bytes: wire.count))
            #expect(exact.count == 1, "pieces of \(size)")
            let error = #expect(throws: ReplyDecodingError.self, "pieces of \(size)") {
                try decode(pieces, limits: ReplyLimits(bytes: wire.count - 1))
            }
            #expect(error?.kind == .tooLarge)
        }
    }

    @Test("the byte limit applies to each reply separately")
    func bytesOfEach() throws {
        let one = RESPValue.bytes([UInt8](repeating: 7, count: 900)).wire
        let limits = ReplyLimits(bytes: 1000)
        // In one piece, in pieces that end inside replies, and in single bytes.
        let many = Array(repeatElement(one, count: 20).joined())
        for size in [many.count, 650, 1001, 1] {
            let pieces = stride(from: 0, to: many.count, by: size).map { Array(many[$0..<min($0 + size, many.count)]) }
            #expect(try decode(pieces, limits: limits).count == 20, "pieces of \(size)")
        }
    }

    @Test("the byte limit of an array applies to the sum of its elements")
    func bytesOfArray() {
        let value = RESPValue.array((0..<50).map { _ in .bytes([UInt8](repeating: 7, count: 100)) })
        let decoder = ReplyDecoder(limits: ReplyLimits(bytes: 2000))
        var fed = 0
        let error = #expect(throws: ReplyDecodingError.self) {
            for byte in value.wire {
                decoder.feed([byte])
                fed += 1
                _ = try decoder.next()
            }
        }
        #expect(error?.kind == .tooLarge)
        #expect(fed == 2001)
    }

    // MARK: Elements

    @Test("an array of exactly the element limit is decoded, and one element more is refused")
    func elements() throws {
        let limits = ReplyLimits(elements: 5)
        #expect(try decode("*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n", limits: limits).first?.array?.count == 5)
        #expect(decodingError(of: "*6\r\n", limits: limits)?.kind == .tooLarge)
    }

    @Test("the element limit applies to the sum over nested arrays, separately for each reply")
    func nestedElements() throws {
        let limits = ReplyLimits(elements: 5)
        let five = "*2\r\n*1\r\n:1\r\n*2\r\n:2\r\n:3\r\n"
        #expect(try decode(five + five + five, limits: limits).count == 3)
        #expect(decodingError(of: "*2\r\n*1\r\n:1\r\n*3\r\n", limits: limits)?.kind == .tooLarge)
        #expect(decodingError(of: five + "*6\r\n", limits: limits)?.kind == .tooLarge)
    }

    // MARK: Depth

    private func nested(_ depth: Int) -> String { String(repeating: "*1\r\n", count: depth) + ":1\r\n" }

    private func depth(_ value: RESPValue) -> Int {
        if case .array(let values) = value { 1 + (values.map(depth).max() ?? 0) } else { 0 }
    }

    @Test("seven nested arrays are decoded, and eight or more are refused", arguments: [8, 9, 10, 100])
    func depth(tooDeep: Int) throws {
        #expect(depth(try #require(try decode(nested(7)).first)) == 7)
        #expect(decodingError(of: nested(tooDeep))?.kind == .tooLarge)
    }

    @Test("a lower depth limit also applies to empty arrays")
    func lowDepth() throws {
        let limits = ReplyLimits(depth: 2)
        #expect(try decode("*2\r\n*1\r\n:1\r\n*0\r\n", limits: limits).count == 1)
        #expect(decodingError(of: "*1\r\n*1\r\n*1\r\n", limits: limits)?.kind == .tooLarge)
        #expect(decodingError(of: "*1\r\n*1\r\n*0\r\n", limits: limits)?.kind == .tooLarge)
    }

    @Test("with a higher depth limit, deeper arrays than hiredis can read cause an error, not a crash")
    func highDepth() throws {
        let limits = ReplyLimits(depth: 100)
        if HiredisVersion.knowsRESP3 {
            #expect(depth(try #require(try decode(nested(100), limits: limits).first)) == 100)
            #expect(decodingError(of: nested(101), limits: limits)?.kind == .tooLarge)
        } else {
            #expect(decodingError(of: nested(9), limits: limits)?.kind == .tooLarge)
        }
    }

    // MARK: Lines

    @Test(
        "a line without an end is refused long before the byte limit",
        arguments: ["+", "-", ":", "$", "*", "*1\r\n+"])
    func endlessLine(start: String) { refusesEndless(start) }

    @Test(
        "a length line with a single line feed or carriage return is refused as well",
        arguments: ["$\n", "$1\r1", "*2\r\n$\n"])
    func endlessLineInDisguise(start: String) { refusesEndless(start) }

    private func refusesEndless(_ start: String) {
        let decoder = ReplyDecoder()
        let piece = [UInt8](repeating: UInt8(ascii: "1"), count: 4096)
        decoder.feed(start)
        var fed = 0
        while fed < 1 << 20 {
            do throws(ReplyDecodingError) {
                guard try decoder.next() == nil else { break }
            } catch {
                #expect(error.kind == .malformed)
                return
            }
            decoder.feed(piece)
            fed += piece.count
        }
        Issue.record("no error after \(fed) bytes")
    }

    @Test("an ordinary long error line is decoded")
    func longLine() throws {
        let text = "ERR " + String(repeating: "x", count: 50_000)
        #expect(try decode("-\(text)\r\n".utf8.map { [$0] }) == [.error(text)])
    }

    // MARK: Invalid lengths

    @Test(
        "a bulk length that is below -1 or not a number is malformed",
        arguments: [
            "-2", "-9223372036854775808", "9223372036854775808", "99999999999999999999", "", "-", "x", "1x", "+1", "01",
        ])
    func bulkLength(length: String) {
        #expect(decodingError(of: "$\(length)\r\n")?.kind == .malformed)
    }

    @Test(
        "an array length that is below -1 or not a number is malformed",
        arguments: [
            "-2", "-9223372036854775808", "9223372036854775808", "99999999999999999999", "", "-", "x", "1x", "+1", "01",
        ])
    func arrayLength(length: String) {
        #expect(decodingError(of: "*\(length)\r\n")?.kind == .malformed)
    }

    @Test(
        "an integer that exceeds 64 bits or is not a number is malformed",
        arguments: ["9223372036854775808", "", "-", "1.5", "1 "])
    func integer(text: String) {
        #expect(decodingError(of: ":\(text)\r\n")?.kind == .malformed)
    }

    static let huge = [1 << 31, 1 << 31 - 1, 1 << 32 - 1, 1 << 32, Int.max - 1, Int.max]

    @Test("a huge array length is refused immediately", arguments: huge)
    func hugeArray(length: Int) {
        for start in ["", "*1\r\n", "*3\r\n:1\r\n"] {
            #expect(decodingError(of: "\(start)*\(length)\r\n") != nil, "after \(start.debugDescription)")
        }
    }

    @Test("a huge bulk length yields no reply and is refused at the byte limit", arguments: huge)
    func hugeBulk(length: Int) {
        let decoder = ReplyDecoder(limits: ReplyLimits(bytes: 200_000))
        decoder.feed("$\(length)\r\n")
        let piece = [UInt8](repeating: 1, count: 50_000)
        let error = #expect(throws: ReplyDecodingError.self) {
            for _ in 0..<5 {
                #expect(try decoder.next() == nil)
                decoder.feed(piece)
            }
            _ = try decoder.next()
        }
        #expect(error?.kind == .tooLarge)
    }

    // MARK: Invalid input

    @Test("a byte that cannot start a reply is malformed", arguments: UInt8.min...UInt8.max)
    func typeByte(byte: UInt8) {
        let known: [Character] =
            ["+", "-", ":", "$", "*"] + (HiredisVersion.knowsRESP3 ? Array("%~>,#_=(") : [])
            + (HiredisVersion.knowsAttributes ? ["|"] : [])
        guard !known.contains(Character(Unicode.Scalar(byte))) else { return }
        for start in ["", "*2\r\n", "*1\r\n*1\r\n"] {
            #expect(decodingError(of: Array(start.utf8) + [byte])?.kind == .malformed)
        }
    }

    @Test("truncated input yields no reply", arguments: ReplyDecoderTests.samples)
    func truncated(wire: String, value: RESPValue) throws {
        let bytes = Array(wire.utf8)
        for length in 0..<bytes.count { #expect(try decode([Array(bytes[..<length])]) == []) }
    }

    @Test(
        "after an error the decoder throws the same error for any further input",
        arguments: ["?", "*9999999\r\n", "*-7\r\n"])
    func dead(bad: String) throws {
        let decoder = ReplyDecoder()
        decoder.feed("+before\r\n*3\r\n:1\r\n" + bad)
        #expect(try decoder.next() == .status("before"))
        let first = #expect(throws: ReplyDecodingError.self) { try decoder.next() }
        for piece in ["", "+OK\r\n", "\r\n", "*1\r\n", String(repeating: "x", count: 100_000)] {
            decoder.feed(piece)
            let next = #expect(throws: ReplyDecodingError.self) { try decoder.next() }
            #expect(next == first)
        }
    }

    @Test("replies that are complete before an error are returned first")
    func repliesBeforeError() throws {
        let decoder = ReplyDecoder()
        decoder.feed(":1\r\n:2\r\n!")
        #expect(try decoder.next() == .integer(1))
        #expect(try decoder.next() == .integer(2))
        #expect(throws: ReplyDecodingError.self) { try decoder.next() }
    }

    // MARK: Memory

    #if os(Linux)
        /// The reserved address space of this process in bytes. Resident memory would not include reserved
        /// pages that have not been written.
        private func reservedBytes() throws -> Int {
            let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
            return try #require(Int(text.split(separator: " ")[0])) * sysconf(Int32(_SC_PAGESIZE))
        }

        @Test("an announced array of four million elements reserves almost no memory")
        func claimedElements() throws {
            let before = try reservedBytes()
            var decoders: [ReplyDecoder] = []
            for _ in 0..<200 {
                let decoder = ReplyDecoder()
                decoder.feed("*4194304\r\n")
                #expect(try decoder.next() == nil)
                decoders.append(decoder)
            }
            // Reserving for all would take at least 200 times 64 MiB. The bound allows for concurrent tests.
            #expect(try reservedBytes() - before < 4 << 30)
            #expect(decoders.count == 200)
        }

        @Test("an announced bulk string of gigabytes reserves almost no memory")
        func claimedBytes() throws {
            let before = try reservedBytes()
            var decoders: [ReplyDecoder] = []
            for _ in 0..<200 {
                let decoder = ReplyDecoder()
                decoder.feed("$2147483648\r\nx")
                #expect(try decoder.next() == nil)
                decoders.append(decoder)
            }
            #expect(try reservedBytes() - before < 4 << 30)
            #expect(decoders.count == 200)
        }
    #endif
}
