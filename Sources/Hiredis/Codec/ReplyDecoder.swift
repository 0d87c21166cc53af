// Bytes of the wire in, RESPValues out: hiredis' redisReader with object functions that build Swift values.
//
// The reader calls back for every item it has parsed, depth first; ReplyBuilder puts the items together. No C pointer
// leaves this file. After a thrown error the decoder is dead, as the reader is: the connection must be closed.
import CHiredis

struct ReplyLimits: Sendable, Hashable {
    /// Most bytes that one reply may take on the wire.
    var bytes = 64 * 1024 * 1024
    /// Most elements that one reply may have, nested ones included.
    var elements = 4 * 1024 * 1024
    /// Most arrays within one another. hiredis 0.14 itself ends at 7.
    var depth = 7
}

struct ReplyDecodingError: Error, Hashable, CustomStringConvertible {
    enum Kind: Hashable { case tooLarge, malformed, outOfMemory }
    var kind: Kind
    var description: String
}

final class ReplyDecoder {
    /// The longest status, error or length line: hiredis has none, and searches an unfinished line anew at every feed.
    private static let longestLine = 64 * 1024

    private let limits: ReplyLimits
    private let builder: ReplyBuilder
    private let sink: UnsafeMutablePointer<rdc_sink>
    private let reader: UnsafeMutablePointer<redisReader>
    private var failure: ReplyDecodingError?
    /// Bytes fed since the last reply was complete: an upper bound of what the unfinished one holds in memory.
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

    /// Takes the next bytes of the wire. Call `next()` until it returns `nil` before feeding again.
    func feed(_ bytes: UnsafeRawBufferPointer) {
        guard failure == nil, let start = bytes.baseAddress, bytes.count > 0 else { return }
        bytesOfUnfinishedReply += bytes.count
        // An error (out of memory) stays in the reader and comes out of redisReaderGetReply.
        _ = redisReaderFeed(reader, start.assumingMemoryBound(to: CChar.self), bytes.count)
    }

    /// The next complete reply, or `nil` until more bytes are fed.
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
                        "a reply is larger than \(limits.bytes) bytes; ask for less at a time or raise the limit"))
        }
        if object != nil {
            bytesOfUnfinishedReply = unread
            return builder.takeReply()
        }
        if rdc_reader_line_exceeds(reader, Self.longestLine) != 0 {
            throw fail(
                .init(kind: .malformed, description: "a reply's line is longer than \(Self.longestLine) bytes"))
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
        // The stack of hiredis 0.14 is fixed; its message is the only sign that nesting was the reason.
        if text.contains("nested") { return .init(kind: .tooLarge, description: text) }
        return .init(kind: reader.pointee.err == REDIS_ERR_OOM ? .outOfMemory : .malformed, description: text)
    }
}

/// Puts the items that redisReader reports, depth first, together to one value.
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

    /// Callbacks for the reader. They hold this builder unretained: the decoder that owns both outlives the reader.
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
        // By far the most frequent status, compared without making a string.
        if bytes.count == 2, bytes[0] == UInt8(ascii: "O"), bytes[1] == UInt8(ascii: "K") { return "OK" }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func open(count: Int) -> Bool {
        elements += count
        if count > limits.elements || elements > limits.elements {
            refusal = .init(
                kind: .tooLarge,
                description:
                    "a reply has more than \(limits.elements) elements; ask for less at a time or raise the limit")
            return false
        }
        if frames.count >= limits.depth {
            refusal = .init(kind: .tooLarge, description: "a reply nests arrays deeper than \(limits.depth)")
            return false
        }
        if count == 0 {
            add(.array([]))
            return true
        }
        var values: [RESPValue] = []
        // The count is the peer's claim: what it really sends may grow the array further, the claim alone reserves little.
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
