import Foundation
import NIOCore
import NIOPosix

@testable import Gateway

/// A TCP connection on which a test writes and reads bytes of its own.
struct RawConnection {
    let channel: any Channel
    private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    private var buffer = ByteBuffer()

    fileprivate init(
        _ channel: any Channel, _ inbound: NIOAsyncChannelInboundStream<ByteBuffer>,
        _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    ) {
        self.channel = channel
        self.inbound = inbound.makeAsyncIterator()
        self.outbound = outbound
    }

    func write(_ text: String) async throws { try await outbound.write(ByteBuffer(string: text)) }

    func write(_ bytes: [UInt8]) async throws { try await outbound.write(ByteBuffer(bytes: bytes)) }

    /// Returns the next bytes; `nil` if the connection ends before.
    mutating func read(_ count: Int) async throws -> [UInt8]? {
        while buffer.readableBytes < count { guard try await receive() else { return nil } }
        return buffer.readBytes(length: count)
    }

    /// Returns the text up to and with a delimiter, by default that of a header; `nil` if the connection ends before.
    mutating func readHead(upTo delimiter: String = "\r\n\r\n") async throws -> String? {
        while true {
            let text = String(buffer: buffer)
            if let end = text.range(of: delimiter) {
                return buffer.readString(length: text[..<end.upperBound].utf8.count)
            }
            guard try await receive() else { return nil }
        }
    }

    /// Reads until the server closes the connection.
    mutating func readToEnd() async throws -> [UInt8] {
        while try await receive() {}
        return buffer.readBytes(length: buffer.readableBytes) ?? []
    }

    /// Reads until the server closes the connection, keeps nothing, and returns the number of bytes.
    mutating func countToEnd() async throws -> Int {
        var count = buffer.readableBytes
        buffer.clear()
        while try await receive() {
            count += buffer.readableBytes
            buffer.clear()
        }
        return count
    }

    private mutating func receive() async throws -> Bool {
        do {
            guard var next = try await inbound.next() else { return false }
            buffer.discardReadBytes()
            buffer.writeBuffer(&next)
            return true
        } catch is IOError {
            // A reset is an end, too.
            return false
        }
    }
}

/// Connects to a node of this machine, and closes the connection after the body.
func withRawConnection<Result: Sendable>(
    port: Int, from address: String? = nil, receiveBuffer: Int? = nil,
    _ body: (inout RawConnection) async throws -> Result
) async throws -> Result {
    var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(.seconds(60))
    if let address { bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: address, port: 0)) }
    if let receiveBuffer {
        bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: SocketOptionValue(receiveBuffer))
    }
    let channel = try await bootstrap.connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
            try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
    }
    return try await channel.executeThenClose { inbound, outbound in
        var connection = RawConnection(channel.channel, inbound, outbound)
        return try await body(&connection)
    }
}
