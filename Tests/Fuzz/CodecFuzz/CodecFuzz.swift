// What libFuzzer calls. scripts/fuzz compiles it together with the decoder's own sources, outside the package.
//
// The input's first byte chooses how the rest is cut into pieces. Whatever the bytes are, the decoder must not crash,
// must give the same replies and the same end however they come, must stay within its limits, must stay dead after an
// error, and its replies must survive being written and read again.

private let limits = ReplyLimits(bytes: 600, elements: 24, depth: 6)

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let start, count > 1 else { return 0 }
    let bytes = UnsafeRawBufferPointer(start: start + 1, count: count - 1)
    let whole = decode(bytes) { bytes.count }
    var seed = UInt(start[0])
    let pieces = decode(bytes) {
        seed = seed &* 0x5DEE_CE66_D &+ 11
        return Int((seed >> 16) % (start[0].isMultiple(of: 2) ? 5 : 200)) + 1
    }
    require(whole.replies == pieces.replies && whole.hasFailed == pieces.hasFailed, "the pieces make a difference")
    for reply in whole.replies { check(reply) }
    return 0
}

private func decode(
    _ bytes: UnsafeRawBufferPointer, length: () -> Int
) -> (replies: [RESPValue], hasFailed: Bool) {
    let decoder = ReplyDecoder(limits: limits)
    var replies: [RESPValue] = []
    var start = 0
    do throws(ReplyDecodingError) {
        while start < bytes.count {
            let end = min(bytes.count, start + length())
            decoder.feed(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            while let reply = try decoder.next() { replies.append(reply) }
            start = end
        }
        return (replies, false)
    } catch {
        requireDead(decoder, error)
        return (replies, true)
    }
}

private func requireDead(_ decoder: ReplyDecoder, _ first: ReplyDecodingError) {
    Array("+OK\r\n".utf8).withUnsafeBytes { decoder.feed($0) }
    do throws(ReplyDecodingError) {
        _ = try decoder.next()
        require(false, "the decoder lives on after an error")
    } catch {
        require(error == first, "the decoder has changed its mind about the error")
    }
}

private func check(_ reply: RESPValue) {
    var elements = 0
    visit(reply, depth: 0, &elements)
    require(elements <= limits.elements, "more elements than allowed")
    var wire: [UInt8] = []
    guard write(reply, to: &wire), wire.count <= limits.bytes else { return }
    let again = wire.withUnsafeBytes { bytes in decode(bytes) { bytes.count } }
    require(again.replies == [reply] && !again.hasFailed, "a reply does not survive being written and read")
}

private func visit(_ value: RESPValue, depth: Int, _ elements: inout Int) {
    guard case .array(let values) = value else { return }
    require(depth < limits.depth, "deeper than allowed")
    elements += values.count
    for value in values { visit(value, depth: depth + 1, &elements) }
}

/// - Returns: `false` for what cannot be written: a line that holds the end of a line.
private func write(_ value: RESPValue, to wire: inout [UInt8]) -> Bool {
    switch value {
    case .status(let text), .error(let text):
        guard !text.utf8.contains(where: { $0 == 13 || $0 == 10 }) else { return false }
        wire += (value.errorMessage == nil ? "+" : "-").utf8
        wire += text.utf8
    case .integer(let number): wire += ":\(number)".utf8
    case .bytes(let bytes):
        wire += "$\(bytes.count)\r\n".utf8
        wire += bytes
    case .null: wire += "$-1".utf8
    case .array(let values):
        wire += "*\(values.count)\r\n".utf8
        return values.allSatisfy { write($0, to: &wire) }
    }
    wire += [13, 10]
    return true
}

private func require(_ holds: Bool, _ message: String) {
    if !holds { fatalError(message) }
}
