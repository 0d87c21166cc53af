// The entry point of libFuzzer. scripts/fuzz compiles this file with the sources of the decoder, outside the package.
//
// The first byte of the input determines how the rest is split into pieces. For any input, the decoder must not crash,
// must return the same replies and the same outcome in any pieces, must stay within its limits, and must throw the
// same error again after an error. Encoding and decoding its replies again must return the same replies.

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
    require(whole.replies == pieces.replies && whole.hasFailed == pieces.hasFailed, "the replies depend on the pieces")
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
        require(false, "the decoder continues after an error")
    } catch {
        require(error == first, "the decoder throws another error the second time")
    }
}

private func check(_ reply: RESPValue) {
    var elements = 0
    visit(reply, depth: 0, &elements)
    require(elements <= limits.elements, "a reply exceeds the element limit")
    var wire: [UInt8] = []
    guard write(reply, to: &wire), wire.count <= limits.bytes else { return }
    let again = wire.withUnsafeBytes { bytes in decode(bytes) { bytes.count } }
    require(again.replies == [reply] && !again.hasFailed, "a reply changes when it is encoded and decoded")
}

private func visit(_ value: RESPValue, depth: Int, _ elements: inout Int) {
    guard case .array(let values) = value else { return }
    require(depth < limits.depth, "a reply exceeds the depth limit")
    elements += values.count
    for value in values { visit(value, depth: depth + 1, &elements) }
}

/// Encodes a value.
///
/// - Returns: `false` if the value cannot be encoded, because a status or an error contains a line break.
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
