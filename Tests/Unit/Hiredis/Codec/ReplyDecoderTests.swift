import TestRandom
import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("Decoding of replies")
struct ReplyDecoderTests {
    /// The kinds of RESP2 replies and their encodings.
    static let samples: [(wire: String, value: RESPValue)] = [
        ("+OK\r\n", .status("OK")),
        ("+\r\n", .status("")),
        ("+PONG\r\n", .status("PONG")),
        ("+naïve ☃\r\n", .status("naïve ☃")),
        ("-ERR unknown command\r\n", .error("ERR unknown command")),
        ("-\r\n", .error("")),
        (":0\r\n", .integer(0)),
        (":1000\r\n", .integer(1000)),
        (":-1\r\n", .integer(-1)),
        (":9223372036854775807\r\n", .integer(.max)),
        (":-9223372036854775808\r\n", .integer(.min)),
        ("$-1\r\n", .null),
        ("$0\r\n\r\n", .bytes([])),
        ("$5\r\nhello\r\n", .bytes(Array("hello".utf8))),
        ("$9\r\na\r\nb\0\r\n\n\r\r\n", .bytes([97, 13, 10, 98, 0, 13, 10, 10, 13])),
        ("$5\r\n+OK\r\n\r\n", .bytes(Array("+OK\r\n".utf8))),
        ("*-1\r\n", .null),
        ("*0\r\n", .array([])),
        ("*2\r\n:1\r\n$1\r\na\r\n", .array([.integer(1), .bytes([97])])),
        (
            "*5\r\n+s\r\n-e\r\n:7\r\n$-1\r\n*-1\r\n",
            .array([.status("s"), .error("e"), .integer(7), .null, .null])
        ),
        (
            "*3\r\n*2\r\n*0\r\n$0\r\n\r\n*1\r\n*1\r\n:-5\r\n$-1\r\n",
            .array([.array([.array([]), .bytes([])]), .array([.array([.integer(-5)])]), .null])
        ),
    ]

    static let everything = samples.flatMap { Array($0.wire.utf8) }

    @Test("each kind of reply is decoded to its value", arguments: samples)
    func kinds(wire: String, value: RESPValue) throws {
        #expect(try decode(wire) == [value])
    }

    @Test("invalid UTF-8 is preserved in a bulk string and repaired in a status")
    func notUTF8() throws {
        #expect(try decode([[36, 50, 13, 10, 0xFF, 0xC3, 13, 10]]) == [.bytes([0xFF, 0xC3])])
        #expect(try decode([[43, 0xFF, 13, 10]]) == [.status("\u{FFFD}")])
    }

    @Test("pipelined replies are returned one by one in order, then nil")
    func pipelined() throws {
        let decoder = ReplyDecoder()
        decoder.feed(Self.everything)
        for sample in Self.samples { #expect(try decoder.next() == sample.value) }
        #expect(try decoder.next() == nil)
        #expect(try decoder.next() == nil)
        decoder.feed("+more\r\n")
        #expect(try decoder.next() == .status("more"))
    }

    @Test("a stream split anywhere into two pieces decodes to the same values")
    func cutOnce() throws {
        let bytes = Self.everything
        let values = Self.samples.map(\.value)
        for cut in 0...bytes.count {
            #expect(try decode([Array(bytes[..<cut]), Array(bytes[cut...])]) == values, "cut at \(cut)")
        }
    }

    @Test("a stream of single bytes yields each reply with its last byte")
    func singleBytes() throws {
        let decoder = ReplyDecoder()
        for sample in Self.samples {
            for byte in sample.wire.utf8.dropLast() {
                decoder.feed([byte])
                #expect(try decoder.next() == nil, "\(sample.wire.debugDescription) is complete too early")
            }
            decoder.feed([10])
            #expect(try decoder.next() == sample.value)
            #expect(try decoder.next() == nil)
        }
    }

    @Test("random values in random pieces decode to the same values", arguments: testSeeds(0..<8))
    func random(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        for round in 0..<300 {
            let values = (0..<Int.random(in: 1...6, using: &generator)).map { _ in
                RESPValue.random(depth: 7, using: &generator)
            }
            var rest = values.flatMap(\.wire)[...]
            var pieces: [[UInt8]] = []
            while !rest.isEmpty {
                let length = Int.random(in: 1...(generator.isHit(1, of: 2) ? 8 : 2000), using: &generator)
                pieces.append(Array(rest.prefix(length)))
                rest = rest.dropFirst(length)
            }
            let decoded = try decode(pieces)
            #expect(decoded == values, "seed \(seed), round \(round)")
        }
    }

    @Test("a bulk string of many megabytes is decoded completely")
    func bigBulk() throws {
        let bytes = (0..<(8 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let wire = RESPValue.bytes(bytes).wire
        let pieces = stride(from: 0, to: wire.count, by: 65_536).map { Array(wire[$0..<min($0 + 65_536, wire.count)]) }
        // Compared outside #expect, which would print both values.
        let isWhole = try decode(pieces + [Array("+next\r\n".utf8)]) == [.bytes(bytes), .status("next")]
        #expect(isWhole)
    }

    @Test("an array of many elements is decoded completely")
    func bigArray() throws {
        let value = RESPValue.array((0..<100_000).map { .integer($0) })
        let isWhole = try decode([value.wire]) == [value]
        #expect(isWhole)
    }

    @Test("without input there is no reply, and empty pieces have no effect")
    func nothing() throws {
        let decoder = ReplyDecoder()
        #expect(try decoder.next() == nil)
        decoder.feed("")
        #expect(try decoder.next() == nil)
        decoder.feed(":4")
        decoder.feed("")
        decoder.feed("2\r\n")
        #expect(try decoder.drain() == [.integer(42)])
    }

    @Test("decoders are independent of each other")
    func independent() throws {
        let (first, second) = (ReplyDecoder(), ReplyDecoder())
        first.feed("*2\r\n:1\r\n")
        second.feed("?")
        #expect(throws: ReplyDecodingError.self) { try second.next() }
        first.feed(":2\r\n")
        #expect(try first.drain() == [.array([.integer(1), .integer(2)])])
    }
}

/// Replies of RESP3, which hiredis 0.14 does not support.
@Suite("RESP3 replies")
struct RESP3Tests {
    static let samples: [(wire: String, value: RESPValue)] = [
        ("%2\r\n$1\r\na\r\n:1\r\n+b\r\n:2\r\n", .array([.bytes([97]), .integer(1), .status("b"), .integer(2)])),
        ("~2\r\n:1\r\n:2\r\n", .array([.integer(1), .integer(2)])),
        (">2\r\n+invalidate\r\n_\r\n", .array([.status("invalidate"), .null])),
        ("%0\r\n", .array([])),
        (",1.25\r\n", .bytes(Array("1.25".utf8))),
        (",inf\r\n", .bytes(Array("inf".utf8))),
        ("#t\r\n", .integer(1)),
        ("#f\r\n", .integer(0)),
        ("_\r\n", .null),
        (
            "(3492890328409238509324850943850943825024385\r\n",
            .bytes(Array("3492890328409238509324850943850943825024385".utf8))
        ),
        (
            "*2\r\n#t\r\n%1\r\n+k\r\n,0.5\r\n",
            .array([.integer(1), .array([.status("k"), .bytes(Array("0.5".utf8))])])
        ),
    ]

    @Test("RESP3 replies are decoded with hiredis 1, and are malformed with 0.14", arguments: samples)
    func kinds(wire: String, value: RESPValue) throws {
        if HiredisVersion.knowsRESP3 {
            #expect(try decode(wire) == [value])
            #expect(try decode(wire.utf8.map { [$0] }) == [value])
        } else {
            #expect(decodingError(of: wire)?.kind == .malformed)
        }
    }

    @Test("a verbatim string is decoded to bytes that end with its text")
    func verbatim() throws {
        if HiredisVersion.knowsRESP3 {
            let bytes = try #require(try decode("=15\r\ntxt:Some string\r\n").first?.bytes)
            #expect(String(decoding: bytes, as: UTF8.self).hasSuffix("Some string"))
        } else {
            #expect(decodingError(of: "=15\r\ntxt:Some string\r\n")?.kind == .malformed)
        }
    }

    @Test("the keys and values of a map count towards the element limit")
    func mapLimit() {
        let error = decodingError(of: "%6\r\n", limits: ReplyLimits(elements: 10))
        #expect(error?.kind == (HiredisVersion.knowsRESP3 ? .tooLarge : .malformed))
    }
}
