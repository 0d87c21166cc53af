import TestRandom
import Testing

@testable import QueueListen

@Suite("EncodedSend")
struct EncodedSendTests {
    private static let request: SendRequest = {
        let messages = [
            "alice": [Message(text: "a", ttl: .seconds(5)), Message(bytes: [0, 10, 255], collapseKey: "k")],
            "bob": [Message(text: "")],
        ]
        // swift-format-ignore: NeverUseForceTry
        return try! SendRequest(messages, maxMessageBytes: 1000)
    }()

    @Test("a decoded send equals the encoded one")
    func roundTrip() throws {
        let own = Self.request.encoded(id: "x")
        #expect(EncodedSend(encoded: own.encoded) == own)
        let same = try SendRequest(
            [Message(text: "a"), Message(text: "b")], to: ["alice", "bob#1"], maxMessageBytes: 1000
        )
        .encoded(
            id: "y")
        #expect(same.shares == nil)
        #expect(EncodedSend(encoded: same.encoded) == same)
    }

    @Test("a part contains the messages of its recipients, in their order, and nothing else")
    func part() {
        let part = Self.request.encoded(id: "x").part([1])
        #expect(part.recipients == ["bob"])
        #expect(part.contents.count == 1)
        #expect(part.shares == [[0]])
        #expect(part.contents[0].envelope.starts(with: "id=x/2\n".utf8))
    }

    /// A send of few and short messages: two are often alike.
    private static func random(_ generator: inout SplitMix) throws -> EncodedSend {
        func some<Value>(_ values: [Value]) -> Value { values.randomElement(using: &generator)! }
        let messages = (0..<Int.random(in: 1...2, using: &generator)).map { _ in
            Message(
                bytes: some([[], [0xFF], [0xFF, 0xFF], [120]]), type: some([nil, "", "x"]),
                headers: some([[:], ["x": ""], ["x": "x"], ["xx": ""]]),
                ttl: some([nil, .milliseconds(1), .milliseconds(2)]), collapseKey: some([nil, "x", "y"]))
        }
        return try SendRequest(messages, to: some([["a"], ["b"], ["a", "b"], ["b", "a"]]), maxMessageBytes: 1000)
            .encoded(id: "x")
    }

    @Test("sends that store different things have different fingerprints")
    func fingerprints() throws {
        var generator = SplitMix(seed: testSeed(default: 1))
        var (sends, conflicts): ([String: EncodedSend], Int) = ([:], 0)
        for _ in 0..<20_000 {
            let encodedSend = try Self.random(&generator)
            let other = sends.updateValue(encodedSend, forKey: encodedSend.fingerprint) ?? encodedSend
            if other != encodedSend { conflicts += 1 }
        }
        #expect(conflicts == 0 && sends.count > 1000)
    }

    @Test("damaged bytes are rejected or decode to a valid send")
    func damaged() {
        let whole = Self.request.encoded(id: "x").encoded
        for count in 0..<whole.count - 1 where EncodedSend(encoded: Array(whole.prefix(count))) != nil {
            // A truncation that still decodes has lost a whole recipient.
            #expect(EncodedSend(encoded: Array(whole.prefix(count)))?.recipients == ["alice"])
        }
        var generator = SplitMix(seed: testSeed(default: 1))
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            guard let encodedSend = EncodedSend(encoded: bytes) else { continue }
            #expect(encodedSend.recipients.indices.allSatisfy { encodedSend.count(of: $0) > 0 })
        }
    }
}
