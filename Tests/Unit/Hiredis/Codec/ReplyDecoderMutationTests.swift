// A fuzzer without external tools: randomly mutated replies must decode to the same values and the same outcome,
// however they are split into pieces. Tests/Fuzz contains a coverage-guided fuzzer.
import TestRandom
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("Mutated replies")
struct ReplyDecoderMutationTests {
    private static let limits = ReplyLimits(bytes: 2048, elements: 200, depth: 5)

    @Test(
        "240,000 mutated inputs decode alike in any pieces and stay within the limits",
        arguments: testSeeds(1..<9))
    func mutated(seed: UInt64) {
        var generator = SplitMix(seed: seed)
        let corpus = (0..<300).map { _ in
            (0..<Int.random(in: 1...3, using: &generator)).flatMap { _ in
                RESPValue.random(depth: 3, using: &generator).wire
            }
        }
        for round in 0..<30_000 {
            var input = corpus.randomElement(using: &generator)!
            for _ in 0..<Int.random(in: 0...4, using: &generator) { Self.mutate(&input, using: &generator) }
            let whole = Self.outcome(of: input) { input.count }
            let pieces = Self.outcome(of: input) { Int(generator.next() % (generator.isHit(1, of: 2) ? 5 : 60)) + 1 }
            if whole != pieces || !whole.replies.allSatisfy(Self.isWithinLimits) {
                Issue.record("seed \(seed), round \(round): \(input) gives \(whole) whole and \(pieces) in pieces")
                return
            }
        }
    }

    private struct Outcome: Equatable {
        var replies: [RESPValue] = []
        /// Without the reason: a reply can be too large and malformed, and the pieces decide which is found first.
        var hasFailed = false
    }

    /// Decodes the input in pieces whose lengths `length` returns.
    private static func outcome(of input: [UInt8], length: () -> Int) -> Outcome {
        let decoder = ReplyDecoder(limits: limits)
        var outcome = Outcome()
        input.withUnsafeBytes { bytes in
            var start = 0
            do throws(ReplyDecodingError) {
                while start < bytes.count {
                    let end = min(bytes.count, start + length())
                    decoder.feed(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
                    while let reply = try decoder.next() { outcome.replies.append(reply) }
                    start = end
                }
            } catch {
                outcome.hasFailed = true
            }
        }
        return outcome
    }

    private static func isWithinLimits(_ value: RESPValue) -> Bool {
        var elements = 0
        func visit(_ value: RESPValue, depth: Int) -> Bool {
            guard case .array(let values) = value else { return true }
            elements += values.count
            return depth < limits.depth && values.allSatisfy { visit($0, depth: depth + 1) }
        }
        return visit(value, depth: 0) && elements <= limits.elements
    }

    private static let telling = Array("$*+-:%~#,_=(>0123456789\r\n".utf8)
    private static let lines = [
        "*-1\r\n", "$-1\r\n", "*3\r\n", "*201\r\n", "$2049\r\n", "*2147483648\r\n", "$9223372036854775807\r\n", "\r\n",
    ].map { Array($0.utf8) }

    private static func mutate(_ bytes: inout [UInt8], using generator: inout SplitMix) {
        let place = Int.random(in: 0...bytes.count, using: &generator)
        switch generator.next() % 6 {
        case 0 where place < bytes.count: bytes[place] = telling.randomElement(using: &generator)!
        case 1 where place < bytes.count: bytes[place] = UInt8.random(in: .min ... .max, using: &generator)
        case 2: bytes.insert(telling.randomElement(using: &generator)!, at: place)
        case 3: bytes.removeSubrange(place..<min(bytes.count, place + 3))
        case 4: bytes.insert(contentsOf: lines.randomElement(using: &generator)!, at: place)
        default: bytes.removeSubrange(place...)
        }
    }
}
