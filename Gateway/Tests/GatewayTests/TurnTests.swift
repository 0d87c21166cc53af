import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@testable import Gateway

/// The turns in which an event loop reads from connections whose clients are not verified.
@Suite("Turns of reads")
struct TurnTests {
    /// Counts the reads that reach the connection.
    private final class ReadCounter: ChannelOutboundHandler {
        typealias OutboundIn = NIOAny
        var count = 0

        func read(context: ChannelHandlerContext) { count += 1 }
    }

    private struct Connection {
        let reads = ReadCounter()
        let reader: TurnReader
        let channel: EmbeddedChannel

        init(_ turns: ServerTurns.LoopTurns, on loop: EmbeddedEventLoop, answers: Bool = false) throws {
            reader = TurnReader(turns)
            channel = EmbeddedChannel(handlers: [reads, reader], loop: loop)
            if answers {
                let timer = RequestTimer(headerTime: .seconds(10), bodyTime: .seconds(60), reader: reader)
                try channel.pipeline.syncOperations.addHandler(timer)
            }
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        /// Asks for two reads, and returns how many there were.
        func read() -> Int {
            let before = reads.count
            channel.read()
            channel.read()
            return reads.count - before
        }

        func receive(length: Int?) throws {
            var head = HTTPRequest(method: .post, scheme: "http", authority: "gateway", path: "/v1/send")
            if let length { head.headerFields[.contentLength] = "\(length)" }
            if length == nil { head.headerFields[.transferEncoding] = "chunked" }
            try channel.writeInbound(HTTPRequestPart.head(head))
        }

        func receive(bytes: Int) throws {
            try channel.writeInbound(HTTPRequestPart.body(ByteBuffer(repeating: 32, count: bytes)))
        }

        func receiveEnd() throws { try channel.writeInbound(HTTPRequestPart.end(nil)) }
    }

    private let loop = EmbeddedEventLoop()
    /// One turn of each kind in a millisecond.
    private let turns: ServerTurns.LoopTurns

    init() {
        let loop = loop
        func turns() -> ReadTurns { ReadTurns(loop, perTick: 1, tick: .milliseconds(1)) }
        self.turns = .init(connections: turns(), bodies: turns())
    }

    @Test("new connections are read in turns, one that has ended takes none, and one that has sent bytes needs none")
    func connections() throws {
        let connections = try (0..<3).map { _ in try Connection(turns, on: loop) }
        func counts() -> [Int] { connections.map(\.reads.count) }
        connections[0].channel.read()
        connections[1].channel.read()
        #expect(connections[2].read() == 0)
        #expect(counts() == [1, 0, 0])
        connections[1].channel.close(promise: nil)
        loop.advanceTime(by: .milliseconds(1))
        #expect(counts() == [1, 0, 1])
        loop.advanceTime(by: .milliseconds(10))
        #expect(counts() == [1, 0, 1])
        try connections[2].channel.writeInbound(ByteBuffer(string: "GET"))
        #expect(connections[2].read() == 2)
    }

    @Test("a body of more than 16 KiB is read in turns, and a shorter one without")
    func bodies() throws {
        let limit = GatewayConfiguration.maxReadBytes
        let connection = try Connection(turns, on: loop, answers: true)
        for length in [limit, nil] {
            try connection.receive(length: length)
            try connection.receive(bytes: limit)
            #expect(connection.read() == 2)
            try connection.receiveEnd()
        }
        for length in [limit + 1, nil] {
            try connection.receive(length: length)
            if length == nil { try connection.receive(bytes: limit + 1) }
            #expect(connection.read() == 1)
            // Another connection does not wait for the body.
            #expect(try Connection(turns, on: loop).read() == 1)
            loop.advanceTime(by: .milliseconds(1))
            #expect(connection.read() == 0)
            loop.advanceTime(by: .milliseconds(10))
            try connection.receiveEnd()
            #expect(connection.read() == 2)
        }
    }

    @Test("the rest of a body that is refused is read in turns and discarded")
    func refused() throws {
        let connection = try Connection(turns, on: loop, answers: true)
        try connection.receive(length: 1 << 20)
        connection.channel.write(HTTPResponsePart.head(HTTPResponse(status: .unauthorized)), promise: nil)
        connection.channel.write(HTTPResponsePart.end(nil), promise: nil)
        #expect(try connection.channel.readInbound(as: HTTPRequestPart.self) != nil)
        #expect(connection.read() == 1)
        try connection.receive(bytes: 100_000)
        #expect(try connection.channel.readInbound(as: HTTPRequestPart.self) == nil)
        #expect(connection.reader.stage == .ending)
    }
}
