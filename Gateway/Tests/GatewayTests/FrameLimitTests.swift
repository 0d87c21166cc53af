import NIOCore
import Testing

@testable import Gateway

private typealias Raw = RawSocket

/// The limits of one WebSocket.
@Suite("The limits of frames")
struct FrameLimitTests {
    /// Writes bytes on a socket that is not authenticated, and returns the code with which it is closed.
    private func code(_ node: TestNode, _ bytes: [UInt8]) async throws -> UInt16? {
        try await withUpgradedSocket(node) { try await Self.code(&$0, bytes) }
    }

    /// Writes bytes, and returns the code with which the socket is closed.
    private static func code(_ socket: inout RawSocket, _ bytes: [UInt8]) async throws -> UInt16? {
        // The gateway may have closed after the first of them.
        try? await socket.connection.write(bytes)
        guard let last = try await socket.rest().last, last.opcode == 8, last.payload.count >= 2 else { return nil }
        return UInt16(last.payload[0]) << 8 | UInt16(last.payload[1])
    }

    @Test("before it is authenticated, a socket takes one frame, which is not fragmented and has at most 4 KiB")
    func first() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let auth = { TestSocket.authentication(alice, target: "/v1/socket").bytes }
            #expect(try await code(nodes[0], Raw.frame(1, auth(), fin: false)) == 1008)
            #expect(try await code(nodes[0], Raw.frame(9, [])) == 1008)
            #expect(try await code(nodes[0], Raw.frame(2, auth())) == 1008)
            // The payload never arrives.
            #expect(try await code(nodes[0], Raw.frame(1, [], length: 4097)) == 1009)
            // A second frame before the first one is accepted, with a signature that never will be.
            let wrong = Raw.text(#"{"auth":{"session":"","time":0,"nonce":"","signature":""}}"#)
            #expect(try await code(nodes[0], Raw.frame(1, auth()) + Raw.frame(9, [])) == 1008)
            #expect(try await code(nodes[0], wrong + Raw.frame(1, [], length: 1_000_000)) == 1008)
            // A first frame of exactly the limit.
            let auth4096 = auth() + [UInt8](repeating: 32, count: 4096 - auth().count)
            try await withUpgradedSocket(nodes[0]) { socket in
                try await socket.connection.write(Raw.frame(1, auth4096))
                let ready = try #require(try await socket.next())
                #expect(try JSONParser.parse(ready.payload)["ready"] != nil)
            }
        }
    }

    @Test("100,000 fragments of one byte behind a large one close the socket at the limit of fragments")
    func fragments() async throws {
        try await withNodes { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let tiny = (0..<100_000).flatMap { _ in [0x00, 0x81, 0, 0, 0, 0, 0x20] as [UInt8] }
            let bytes = Raw.frame(1, [UInt8](repeating: 32, count: 900_000), fin: false) + tiny + Raw.frame(0, [])
            #expect(try await withRawSocket(nodes[0], alice) { try await Self.code(&$0, bytes) } == 1009)
            // One message of as many fragments as are allowed, twice.
            try await withRawSocket(nodes[0], alice) { socket in
                let text = Raw.echo("all of them")
                for _ in 1...2 {
                    let spaces = (0..<254).flatMap { _ in Raw.frame(0, [32], fin: false) }
                    try await socket.connection.write(
                        Raw.text(text, fin: false) + spaces + Raw.frame(0, [32]))
                    #expect(try await socket.echoed() == "all of them")
                }
            }
        }
    }

    @Test("a client that sends more frames in a second than allowed is closed, and one that does not stays")
    func rate() async throws {
        try await withNodes(configure: { $0.maxFramesPerSecond = 50 }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            let bob = try await TestClient(nodes[0].url, "bob")
            try await withRawSocket(nodes[0], bob) { quiet in
                let pings = (0..<100_000).flatMap { _ in Raw.frame(9, []) }
                #expect(try await withRawSocket(nodes[0], alice) { try await Self.code(&$0, pings) } == 1008)
                // As many as are allowed at once.
                try await quiet.connection.write(
                    (0..<99).flatMap { _ in Raw.frame(10, []) } + Raw.text(Raw.echo("here")))
                #expect(try await quiet.echoed() == "here")
            }
        }
    }

    @Test("the rate of frames is that of a bucket of two seconds")
    func bucket() {
        var rate = FrameRate(perSecond: 10, now: .uptimeNanoseconds(0))
        func allowed(_ milliseconds: UInt64) -> Int {
            var count = 0
            while rate.allows(.uptimeNanoseconds(milliseconds * 1_000_000)) { count += 1 }
            return count
        }
        #expect([allowed(0), allowed(500), allowed(1500), allowed(60_000)] == [20, 5, 10, 20])
    }
}
