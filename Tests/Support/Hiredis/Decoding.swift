// Helpers of the codec tests: feeding a decoder, and encoding a value as RESP.
import CHiredis
import TestRandom
import TestSupport

@testable import Hiredis

/// The version of hiredis. Comparing the macro directly would warn about unreachable code.
enum HiredisVersion {
    static let major = Int(HIREDIS_MAJOR)
    static let knowsRESP3 = major >= 1
    /// Since version 1.3.
    static let knowsAttributes = major > 1 || (major == 1 && Int(HIREDIS_MINOR) >= 3)
}

extension ReplyDecoder {
    func feed(_ bytes: some Collection<UInt8>) {
        Array(bytes).withUnsafeBytes { feed($0) }
    }

    func feed(_ text: String) { feed(text.utf8) }

    /// Returns all replies that are complete.
    func drain() throws(ReplyDecodingError) -> [RESPValue] {
        var replies: [RESPValue] = []
        while let reply = try next() { replies.append(reply) }
        return replies
    }
}

/// Decodes bytes that arrive in pieces.
func decode(
    _ pieces: [[UInt8]], limits: ReplyLimits = ReplyLimits()
) throws(ReplyDecodingError) -> [RESPValue] {
    let decoder = ReplyDecoder(limits: limits)
    var replies: [RESPValue] = []
    for piece in pieces {
        decoder.feed(piece)
        replies += try decoder.drain()
    }
    return replies
}

func decode(_ text: String, limits: ReplyLimits = ReplyLimits()) throws(ReplyDecodingError) -> [RESPValue] {
    try decode([Array(text.utf8)], limits: limits)
}

/// Returns the error that the bytes cause, after any number of replies.
func decodingError(of bytes: some Collection<UInt8>, limits: ReplyLimits = ReplyLimits()) -> ReplyDecodingError? {
    do throws(ReplyDecodingError) {
        _ = try decode([Array(bytes)], limits: limits)
        return nil
    } catch {
        return error
    }
}

func decodingError(of text: String, limits: ReplyLimits = ReplyLimits()) -> ReplyDecodingError? {
    decodingError(of: text.utf8, limits: limits)
}

extension RESPValue {
    /// The RESP2 encoding of the value.
    var wire: [UInt8] {
        switch self {
        case .status(let text): Array("+\(text)\r\n".utf8)
        case .error(let text): Array("-\(text)\r\n".utf8)
        case .integer(let value): Array(":\(value)\r\n".utf8)
        case .bytes(let bytes): Array("$\(bytes.count)\r\n".utf8) + bytes + [13, 10]
        case .array(let values): Array("*\(values.count)\r\n".utf8) + values.flatMap(\.wire)
        case .null: Array("$-1\r\n".utf8)
        }
    }

    /// Returns a random value whose arrays are nested at most `depth` levels.
    static func random(depth: Int, using generator: inout SplitMix) -> RESPValue {
        let texts = ["OK", "", "PONG", "QUEUED", "ERR no such key", "naïve ☃"]
        switch Int.random(in: 0..<(depth > 0 ? 8 : 5), using: &generator) {
        case 0: return .status(texts.randomElement(using: &generator)!)
        case 1: return .error(texts.randomElement(using: &generator)!)
        case 2:
            let edges = [Int.min, Int.max, 0, -1, 1, Int.random(in: .min ... .max, using: &generator)]
            return .integer(edges.randomElement(using: &generator)!)
        case 3: return .null
        case 4: return .bytes(randomBytes(using: &generator))
        default:
            let count = Int.random(in: 0...4, using: &generator)
            return .array((0..<count).map { _ in random(depth: depth - 1, using: &generator) })
        }
    }

    /// Returns random bytes, many of which have a meaning in the protocol.
    static func randomBytes(using generator: inout SplitMix) -> [UInt8] {
        let telling: [UInt8] = [0, 10, 13, 36, 42, 43, 45, 58, 255]
        let length =
            generator.isHit(1, of: 20) ? Int.random(in: 500...3000, using: &generator) : Int(generator.next() % 24)
        return (0..<length).map { _ in
            generator.isHit(1, of: 2)
                ? telling.randomElement(using: &generator)! : UInt8.random(in: .min ... .max, using: &generator)
        }
    }
}
