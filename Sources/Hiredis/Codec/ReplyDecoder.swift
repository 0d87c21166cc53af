// No C pointer leaves this file.
import CHiredis

/// Limits on the size of a reply.
struct ReplyLimits: Sendable, Hashable {
    /// The maximum number of bytes of one reply on the wire.
    var bytes = 64 * 1024 * 1024
    /// The maximum number of elements in one reply, including nested ones.
    var elements = 4 * 1024 * 1024
    /// The maximum depth of nested arrays. hiredis 0.14 reads no more than 7.
    var depth = 7
}

/// The reason why the bytes of a connection cannot be decoded.
struct ReplyDecodingError: Error, Hashable, CustomStringConvertible {
    enum Kind: Hashable { case tooLarge, malformed, outOfMemory }
    var kind: Kind
    var description: String
}

/// Turns the bytes of a connection into replies, with hiredis' `redisReader`.
///
/// The reader calls back for every item that it has parsed, depth first, and `ReplyBuilder`
/// assembles the items. After a thrown error neither the reader nor the decoder can continue: the
/// connection must be closed.
final class ReplyDecoder {
    /// The maximum length of a status, error or length line. hiredis has no limit, and searches an
    /// incomplete line from its start with every feed.
    private static let maxLine = 64 * 1024

    private let limits: ReplyLimits
    private let builder: ReplyBuilder
    private let sink: UnsafeMutablePointer<rdc_sink>
    private let reader: UnsafeMutablePointer<redisReader>
    private var failure: ReplyDecodingError?
    /// The number of bytes fed since the last complete reply: an upper bound for what the
    /// incomplete one holds in memory.
    private var bytesOfUnfinishedReply = 0

    init(limits: ReplyLimits = ReplyLimits()) {
        self.limits = limits
        builder = ReplyBuilder(limits: limits)
        sink = .allocate(capacity: 1)
        sink.initialize(to: builder.makeSink())
        guard let reader = rdc_reader_create(sink) else { fatalError("redisReader: out of memory") }
        self.reader = reader
    }

    deinit {
        redisReaderFree(reader)
        sink.deallocate()
    }

    /// Takes the next bytes of the connection. Call `next()` until it returns `nil` before feeding
    /// again.
    func feed(_ bytes: UnsafeRawBufferPointer) {
        guard failure == nil, let start = bytes.baseAddress, bytes.count > 0 else { return }
        bytesOfUnfinishedReply += bytes.count
        // The reader keeps an error (out of memory), and redisReaderGetReply returns it.
        _ = redisReaderFeed(reader, start.assumingMemoryBound(to: CChar.self), bytes.count)
    }

    /// Returns the next complete reply, or `nil` if more bytes are needed.
    func next() throws(ReplyDecodingError) -> RESPValue? {
        if let failure { throw failure }
        var object: UnsafeMutableRawPointer?
        guard redisReaderGetReply(reader, &object) == REDIS_OK else { throw fail(readerError()) }
        let unread = rdc_reader_unread(reader)
        if bytesOfUnfinishedReply - (object == nil ? 0 : unread) > limits.bytes {
            throw fail(
                .init(
                    kind: .tooLarge,
                    description:
                        "a reply is larger than \(limits.bytes) bytes; request less at a time or raise limits.replyBytes"
                ))
        }
        if object != nil {
            bytesOfUnfinishedReply = unread
            return builder.takeReply()
        }
        if rdc_reader_line_exceeds(reader, Self.maxLine) != 0 {
            throw fail(
                .init(kind: .malformed, description: "a line of a reply is longer than \(Self.maxLine) bytes"))
        }
        return nil
    }

    private func fail(_ error: ReplyDecodingError) -> ReplyDecodingError {
        failure = error
        return error
    }

    private func readerError() -> ReplyDecodingError {
        if let refusal = builder.refusal { return refusal }
        let text = withUnsafeBytes(of: reader.pointee.errstr) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        // hiredis 0.14 has a stack of fixed size, and only its message shows that nesting was the reason.
        if text.contains("nested") { return .init(kind: .tooLarge, description: text) }
        return .init(kind: reader.pointee.err == REDIS_ERR_OOM ? .outOfMemory : .malformed, description: text)
    }
}

/// Assembles the items that `redisReader` reports, depth first, into one value.
private final class ReplyBuilder {
    private struct Frame {
        var values: [RESPValue]
        var missing: Int
    }

    private let limits: ReplyLimits
    private var frames: [Frame] = []
    private var elements = 0
    private var reply: RESPValue?
    private(set) var refusal: ReplyDecodingError?

    init(limits: ReplyLimits) { self.limits = limits }

    /// Returns the callbacks for the reader. They hold this builder unretained, which is safe
    /// because the decoder owns both and frees the reader first.
    func makeSink() -> rdc_sink {
        rdc_sink(
            context: Unmanaged.passUnretained(self).toOpaque(),
            string: { context, type, bytes, length in
                let raw = UnsafeRawBufferPointer(start: bytes, count: length)
                let value: RESPValue =
                    switch type {
                    case REDIS_REPLY_STATUS: .status(ReplyBuilder.text(raw))
                    case REDIS_REPLY_ERROR: .error(ReplyBuilder.text(raw))
                    default: .bytes([UInt8](raw))
                    }
                ReplyBuilder.from(context).add(value)
            },
            integer: { context, value in ReplyBuilder.from(context).add(.integer(Int(value))) },
            nil: { context in ReplyBuilder.from(context).add(.null) },
            array: { context, count in ReplyBuilder.from(context).open(count: count) ? 0 : 1 }
        )
    }

    func takeReply() -> RESPValue? {
        elements = 0
        defer { reply = nil }
        return reply
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> ReplyBuilder {
        Unmanaged<ReplyBuilder>.fromOpaque(context!).takeUnretainedValue()
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        // The most frequent status by far, compared without making a string.
        if bytes.count == 2, bytes[0] == UInt8(ascii: "O"), bytes[1] == UInt8(ascii: "K") { return "OK" }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func open(count: Int) -> Bool {
        elements += count
        if count > limits.elements || elements > limits.elements {
            refusal = .init(
                kind: .tooLarge,
                description:
                    "a reply has more than \(limits.elements) elements; request less at a time or raise limits.replyElements"
            )
            return false
        }
        if frames.count >= limits.depth {
            refusal = .init(
                kind: .tooLarge,
                description: "a reply nests arrays deeper than \(limits.depth); raise limits.replyDepth")
            return false
        }
        if count == 0 {
            add(.array([]))
            return true
        }
        var values: [RESPValue] = []
        // The count is only what the peer claims, so it reserves little memory; the array grows with what really arrives.
        values.reserveCapacity(min(count, 1024))
        frames.append(Frame(values: values, missing: count))
        return true
    }

    private func add(_ value: RESPValue) {
        var value = value
        while let last = frames.indices.last {
            frames[last].values.append(value)
            frames[last].missing -= 1
            if frames[last].missing > 0 { return }
            value = .array(frames.removeLast().values)
        }
        reply = value
    }
}
