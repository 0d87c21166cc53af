import Testing

@testable import Gateway

/// The demands of RFC 6455 on a server, in the order of the Autobahn test suite's chapters.
@Suite("WebSocket conformance", .timeLimit(.minutes(10)))
struct ConformanceTests {
    private typealias Raw = RawSocket

    /// Runs a body with a function that opens sockets.
    private func withSockets(
        configure: (inout GatewayConfiguration) -> Void = { _ in },
        _ body: @escaping @Sendable (TestNode, TestClient) async throws -> Void
    ) async throws {
        try await withNodes(configure: configure) { nodes, _ in
            try await body(nodes[0], try await TestClient(nodes[0].url, "alice"))
        }
    }

    /// Writes frames to a new socket, and returns the close code with which the gateway answers, after whatever else it
    /// has answered. 0: a close frame without a code; `nil`: the end of the connection without a close frame.
    private func code(_ node: TestNode, _ client: TestClient, _ frames: [[UInt8]]) async throws -> Int? {
        try await withRawSocket(node, client) { socket in
            try await socket.connection.write(frames.flatMap { $0 })
            let rest = try await socket.rest()
            guard let close = rest.last, close.opcode == 8 else { return nil }
            #expect(rest.filter { $0.opcode == 8 }.count == 1)
            return close.payload.count < 2 ? 0 : Int(close.payload[0]) << 8 | Int(close.payload[1])
        }
    }

    @Test("texts of all length encodings are answered, in one packet and in pieces", arguments: [0, 997, 1])
    func lengths(piece: Int) async throws {
        try await withSockets { node, client in
            try await withRawSocket(node, client) { socket in
                // The lengths of whole frames: {"ack":""} has 10 bytes.
                let lengths = [10, 125, 126, 127, 128] + (piece == 1 ? [] : [65535, 65536, 65537, 1 << 20])
                for length in lengths {
                    let text = String(repeating: "*", count: length - 10)
                    let frame = Raw.text(Raw.echo(text))
                    for start in stride(from: 0, to: frame.count, by: piece == 0 ? frame.count : piece) {
                        let end = piece == 0 ? frame.count : min(frame.count, start + piece)
                        try await socket.connection.write(Array(frame[start..<end]))
                    }
                    #expect(try await socket.echoed() == text)
                }
            }
        }
    }

    @Test("pings are answered with their payload, in order; pongs have no effect")
    func pings() async throws {
        try await withSockets { node, client in
            try await withRawSocket(node, client) { socket in
                let payloads = [
                    [], Array("Hello".utf8), [0, 255, 254, 0xFD], Array(repeating: UInt8(0xFE), count: 125),
                ]
                for payload in payloads {
                    try await socket.connection.write(Raw.frame(9, payload))
                    #expect(try await socket.next() == Raw.Frame(opcode: 10, payload: payload))
                    for byte in Raw.frame(9, payload) { try await socket.connection.write([byte]) }
                    #expect(try await socket.next() == Raw.Frame(opcode: 10, payload: payload))
                }
                try await socket.connection.write((0..<10).flatMap { Raw.frame(9, [$0]) })
                for number in UInt8(0)..<10 {
                    #expect(try await socket.next() == Raw.Frame(opcode: 10, payload: [number]))
                }
                try await socket.connection.write(
                    Raw.frame(10, []) + Raw.frame(10, [1, 2, 3]) + Raw.text(Raw.echo("after pongs")))
                #expect(try await socket.echoed() == "after pongs")
            }
            #expect(try await code(node, client, [Raw.frame(9, Array(repeating: 0xFE, count: 126))]) == 1002)
            #expect(try await code(node, client, [Raw.frame(10, Array(repeating: 0xFE, count: 126))]) == 1002)
        }
    }

    @Test("a reserved bit or opcode, or a frame without a mask, is a violation")
    func reserved() async throws {
        try await withSockets { node, client in
            var violations: [[[UInt8]]] = []
            for bits in UInt8(1)...7 {
                for opcode in [1, 9, 8] as [UInt8] { violations.append([Raw.frame(opcode, [], reserved: bits)]) }
            }
            for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [UInt8] {
                violations.append([Raw.text(Raw.echo("before")), Raw.frame(opcode, [])])
                violations.append([Raw.frame(opcode, [1, 2])])
            }
            for opcode in [1, 8, 9, 10] as [UInt8] { violations.append([Raw.frame(opcode, [], isMasked: false)]) }
            for frames in violations {
                let code = try await code(node, client, frames)
                #expect(code == 1002, "\(frames)")
            }
        }
    }

    @Test("fragments make one text, also empty ones, with control frames between them")
    func fragments() async throws {
        try await withSockets { node, client in
            try await withRawSocket(node, client) { socket in
                let bytes = Array(Raw.echo("grüß dich 👋").utf8)
                for size in [1, 5, bytes.count] {
                    var frames: [[UInt8]] = [Raw.frame(1, [], fin: false)]
                    for start in stride(from: 0, to: bytes.count, by: size) {
                        frames.append(Raw.frame(0, Array(bytes[start..<min(bytes.count, start + size)]), fin: false))
                    }
                    try await socket.connection.write((frames + [Raw.frame(9, [7]), Raw.frame(0, [])]).flatMap { $0 })
                    #expect(try await socket.next() == Raw.Frame(opcode: 10, payload: [7]))
                    #expect(try await socket.echoed() == "grüß dich 👋")
                }
            }
            let half = Raw.text("{", fin: false)
            for (frames, name) in [
                ([Raw.frame(9, [1], fin: false), Raw.frame(0, [2])], "a fragmented ping"),
                ([Raw.frame(10, [1], fin: false)], "a fragmented pong"),
                ([Raw.frame(8, [3, 232], fin: false)], "a fragmented close"),
                ([Raw.frame(0, [1])], "a continuation of nothing"),
                ([Raw.frame(0, [1], fin: false)], "a continuation of nothing that goes on"),
                ([half, Raw.frame(0, Array("}".utf8), fin: false), Raw.text("{}")], "a text in a text"),
                ([half, half], "two beginnings"),
                ([Raw.text(Raw.echo("x")), Raw.frame(0, [1])], "a continuation after a whole text"),
            ] {
                #expect(try await code(node, client, frames) == 1002, "\(name)")
            }
            #expect(try await code(node, client, [Raw.frame(2, [1])]) == 1003)
            #expect(try await code(node, client, [Raw.frame(2, [1], fin: false)]) == 1003)
        }
    }

    @Test("valid UTF-8 is answered as it is, invalid UTF-8 closes with 1007")
    func utf8() async throws {
        try await withSockets { node, client in
            try await withRawSocket(node, client) { socket in
                for text in [
                    "κόσμε", "Hello-µ@ßöäüàá-UTF-8!!", "\u{7F}", "\u{80}", "\u{7FF}", "\u{800}", "\u{D7FF}", "\u{E000}",
                    "\u{FFFD}", "\u{FFFE}", "\u{FFFF}", "\u{10000}", "\u{10FFFF}", "e\u{301}", "\u{FEFF}",
                ] {
                    try await socket.connection.write(Raw.text(Raw.echo(text)))
                    #expect(try await socket.echoed().map { Array($0.utf8) } == Array(text.utf8))
                }
            }
            for bytes in [
                [0x80], [0xBF], [0xC0], [0xC0, 0xAF], [0xC1, 0xBF], [0xC3], [0xC3, 0x28], [0xE0, 0x80, 0xAF],
                [0xE2, 0x82],
                [0xE2, 0x28, 0xA1], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xED, 0xA0, 0x80, 0xED, 0xB0, 0x80],
                [0xF0, 0x80, 0x80, 0xAF], [0xF0, 0x90, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80],
                [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80], [0xFE], [0xFF],
                [0xCE, 0xBA, 0xE1, 0xBD, 0xB9, 0xED, 0xA0, 0x80, 0x65],
            ] as [[UInt8]] {
                let whole = Array("{\"ack\":\"".utf8) + bytes + Array("\"}".utf8)
                #expect(try await code(node, client, [Raw.frame(1, whole)]) == 1007, "\(bytes)")
                let (head, tail) = (whole.prefix(8 + bytes.count / 2), whole.dropFirst(8 + bytes.count / 2))
                let parts = [Raw.frame(1, Array(head), fin: false), Raw.frame(0, Array(tail))]
                #expect(try await code(node, client, parts) == 1007, "\(bytes) in two")
            }
        }
    }

    @Test("a close is answered with its code, and nothing after it is")
    func close() async throws {
        try await withSockets { node, client in
            for valid in Array(1000...1003) + Array(1007...1014) + [3000, 3999, 4000, 4999] {
                #expect(try await code(node, client, [Raw.close(UInt16(valid))]) == valid)
            }
            for invalid in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535] as [UInt16] {
                #expect(try await code(node, client, [Raw.close(invalid)]) == 1002, "\(invalid)")
            }
            #expect(try await code(node, client, [Raw.frame(8, [])]) == 0)
            #expect(try await code(node, client, [Raw.frame(8, [3])]) == 1002)
            #expect(try await code(node, client, [Raw.close(1000, Array(repeating: 0x2A, count: 123))]) == 1000)
            #expect(try await code(node, client, [Raw.close(1000, Array(repeating: 0x2A, count: 124))]) == 1002)
            #expect(try await code(node, client, [Raw.close(1000, [0xCE, 0xBA, 0xFF])]) == 1007)
            for after in [Raw.close(1000), Raw.frame(9, [1]), Raw.text(Raw.echo("after")), Raw.frame(0, [1])] {
                let rest = try await withRawSocket(node, client) { socket in
                    try await socket.connection.write(Raw.close(1000) + after)
                    return try await socket.rest()
                }
                #expect(rest == [Raw.Frame(opcode: 8, payload: [3, 232])])
            }
            // In the middle of a text.
            #expect(try await code(node, client, [Raw.text("{", fin: false), Raw.close(1000)]) == 1000)
        }
    }

    @Test("a text of the maximum size is answered, a larger one closes with 1009, before it has arrived")
    func limits() async throws {
        try await withSockets(configure: { $0.maxBodyBytes = 100_000 }) { node, client in
            let text = String(repeating: "*", count: 100_000 - 10)
            try await withRawSocket(node, client) { socket in
                try await socket.connection.write(Raw.text(Raw.echo(text)))
                #expect(try await socket.echoed() == text)
            }
            #expect(try await code(node, client, [Raw.text(Raw.echo(text + "*"))]) == 1009)
            let bytes = Array(Raw.echo(text + "*").utf8)
            let (head, tail) = (Raw.frame(1, Array(bytes.prefix(50_000)), fin: false), Array(bytes.dropFirst(50_000)))
            #expect(try await code(node, client, [head, Raw.frame(0, tail)]) == 1009)
            // Only the header of a frame that would not fit.
            for length in [100_001, 1 << 32, UInt64(Int64.max)] as [UInt64] {
                #expect(try await code(node, client, [Raw.frame(1, [], length: length)]) == 1009, "\(length)")
            }
            // No valid length.
            let invalid = try await code(node, client, [Raw.frame(1, [], length: 1 << 63)])
            #expect(invalid == 1002 || invalid == 1009)
        }
    }
}
