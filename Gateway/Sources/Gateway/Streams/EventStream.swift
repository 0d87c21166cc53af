import Hummingbird
import NIOCore
import NIOHTTPTypes
import NIOPosix
import QueueListen

/// The body of a response that is a stream of server-sent events.
struct EventStream: Sendable {
    /// The end of the id of the event `superseded`. A browser repeats it when it reconnects by itself.
    static let supersededSuffix = ";superseded"

    let stream: MailStream
    let configuration: GatewayConfiguration

    /// Writes the events of the stream, the last one included.
    func write(after cursor: Cursor?, to writer: inout any ResponseBodyWriter) async throws {
        let delay = Int(max(.zero, min(configuration.reconnectDelay, .seconds(3600))) / .milliseconds(1))
        try await writer.write(ByteBuffer(string: "retry: \(delay)\n\n"))
        let end = try await run(after: cursor, to: &writer)
        switch end {
        case .superseded(let cursor):
            try await writer.write(
                Self.event(
                    "superseded", id: cursor.description + Self.supersededSuffix,
                    ["cursor": .string(cursor.description)]))
        case .expired: try await writer.write(Self.bye("expired", retry: configuration.reconnectTime))
        case .restart: try await writer.write(Self.bye("restart", retry: configuration.reconnectTime))
        }
    }

    /// Writes the events of the stream until it ends, or its client has gone.
    private func run(after cursor: Cursor?, to writer: inout any ResponseBodyWriter) async throws -> MailStream.End {
        guard let client = ClientConnection.current, try await !client.hasEncodedBody else {
            return try await ClientConnection.cancelling { cancel in
                let connection = MailStream.Connection(
                    eventLoop: MultiThreadedEventLoopGroup.singleton.any(), keepAlive: nil, stopWriting: cancel)
                return try await stream.run(after: cursor, on: connection) { try await Self.write($0, to: &writer) }
            }
        }
        let channel = client.channel
        let connection = MailStream.Connection(
            eventLoop: channel.eventLoop,
            keepAlive: { channel.writeAndFlush(HTTPResponsePart.body(Self.comment)) },
            stopWriting: { channel.close(promise: nil) })
        return try await client.closing.whileOpen(onEnd: {
            stream.cancel()
            channel.close(promise: nil)
        }) {
            try await stream.run(after: cursor, on: connection) { try await Self.write($0, to: &writer) }
        }
    }

    /// Writes a delivery; a comment for `nil`.
    private static func write(_ delivery: Delivery?, to writer: inout any ResponseBodyWriter) async throws {
        guard let delivery else { return try await writer.write(comment) }
        try await write(text(of: delivery), to: &writer)
    }

    /// Writes a page, and returns when it has left, except for at most `GatewayConfiguration.maxUnwaitedBytes`.
    static func write(_ page: ByteBuffer, to writer: inout any ResponseBodyWriter) async throws {
        var rest = page
        guard rest.readableBytes > GatewayConfiguration.maxUnwaitedBytes,
            let first = rest.readSlice(length: rest.readableBytes - 1)
        else { return try await writer.write(rest) }
        // A write waits for room before it begins, not until its bytes have left. So the last byte is a write of its own:
        // when it returns, the page has left, and the next one can be read. The event loop must have seen the page before.
        try await writer.write(first)
        try await ClientConnection.current?.channel.eventLoop.submit {}.get()
        try await writer.write(rest)
    }

    private static var comment: ByteBuffer { ByteBuffer(string: ":\n\n") }

    private static func bye(_ reason: String, retry: Int) -> ByteBuffer {
        var text = ByteBuffer(string: "retry: \(retry)\n")
        var event = event("bye", id: nil, ["reason": .string(reason), "retry": JSON(retry)])
        text.writeBuffer(&event)
        return text
    }

    /// The events of a delivery.
    private static func text(of delivery: Delivery) -> ByteBuffer {
        guard let gap = JSON(gapOf: delivery) else {
            var text = ByteBuffer()
            for message in delivery.messages {
                var event = event("message", id: message.cursor.description, JSON(message))
                text.writeBuffer(&event)
            }
            // Skipped messages at the end: an id without data is no event, but moves the position.
            if delivery.messages.last?.cursor != delivery.cursor { text.writeString("id: \(delivery.cursor)\n\n") }
            return text
        }
        return event("gap", id: delivery.cursor.description, gap)
    }

    private static func event(_ name: String, id: String?, _ data: JSON) -> ByteBuffer {
        var text = ByteBuffer()
        if let id { text.writeString("id: \(id)\n") }
        text.writeString("event: \(name)\ndata: ")
        text.writeBytes(data.bytes)
        text.writeString("\n\n")
        return text
    }
}

extension JSON {
    /// The report of a loss; `nil` for any other delivery.
    init?(gapOf delivery: Delivery) {
        let (status, first): (String, Int?)
        switch delivery.status {
        case .reset: (status, first) = ("reset", nil)
        case .forked: (status, first) = ("forked", nil)
        case .truncated(let index): (status, first) = ("truncated", index)
        case .messages, .timedOut, .superseded: return nil
        }
        let json: JSON = ["status": .string(status)]
        self = json.with(("first", first.map { JSON($0) }), ("cursor", .string(delivery.cursor.description)))
    }
}
