import Testing

@testable import GatewayClient

@Suite("Server-sent events")
struct ServerSentEventTests {
    private func parse(_ pieces: [[UInt8]]) throws -> [ServerSentEvent] {
        var parser = ServerSentEventParser()
        return try pieces.flatMap { try parser.parse($0) }
    }

    private func parse(_ text: String) throws -> [ServerSentEvent] { try parse([Array(text.utf8)]) }

    @Test(
        "an event is the same wherever the stream is cut, with every kind of line end", arguments: ["\n", "\r\n", "\r"])
    func boundaries(lineEnd: String) throws {
        let lines = [
            "\u{FEFF}retry: 2000", "", ":a comment", "id: c1", "event: message", "data: {\"text\":\"grüß 👋\"}", "",
            "data", "data:  two", "data:three: four", "", "id: c2", "", "event: gap", "", "",
        ]
        let bytes = Array(lines.joined(separator: lineEnd).utf8)
        let expected = [
            ServerSentEvent(retry: 2000), ServerSentEvent(id: "c1", name: "message", data: "{\"text\":\"grüß 👋\"}"),
            ServerSentEvent(data: "\n two\nthree: four"), ServerSentEvent(id: "c2"), ServerSentEvent(name: "gap"),
        ]
        for cut in 0...bytes.count {
            #expect(try parse([Array(bytes[..<cut]), Array(bytes[cut...])]) == expected, "cut at \(cut)")
        }
        #expect(try parse(bytes.map { [$0] }) == expected)
    }

    @Test("an event that is not complete is not delivered")
    func incomplete() throws {
        #expect(try parse("data: 1\n\ndata: 2\n").map(\.data) == ["1"])
        #expect(try parse("data: 1\n\ndata: 2").map(\.data) == ["1"])
    }

    @Test("comments, unknown fields, and ids and delays without their form change nothing")
    func ignored() throws {
        #expect(try parse(":\n\n: x\n\nother: 1\nid: a\0b\nretry: 1s\nretry:\ndata: x\n\n") == [.init(data: "x")])
        #expect(try parse("id\ndata: x\n\n") == [.init(id: "", data: "x")])
        #expect(try parse("data: \u{FEFF}x\n\n").map(\.data) == ["\u{FEFF}x"])
    }

    @Test("a stream without an end of its event is refused")
    func tooLarge() throws {
        var parser = ServerSentEventParser()
        let line = Array("data: ".utf8) + [UInt8](repeating: 0x61, count: ServerSentEventParser.maxEventBytes)
        #expect(throws: GatewayError.self) { try parser.parse(line) }
    }
}
