import TestRandom
import Testing

@testable import QueueListen

@Suite("EncodedSend")
struct EncodedSendTests {
    private static let order: SendRequest = {
        let messages = [
            "alice": [Message("a", ttl: .seconds(5)), Message(bytes: [0, 10, 255], collapseKey: "k")],
            "bob": [Message("")],
        ]
        return try! SendRequest(messages, largest: 1000)
    }()

    @Test("what goes into Redis comes out as it was")
    func roundTrip() throws {
        let own = Self.order.encodedSend(id: "x")
        #expect(EncodedSend(encoded: own.encoded) == own)
        let same = try SendRequest([Message("a"), Message("b")], to: ["alice", "bob#1"], largest: 1000).encodedSend(
            id: "y")
        #expect(same.shares == nil)
        #expect(EncodedSend(encoded: same.encoded) == same)
    }

    @Test("a part has what its recipients get, in their order, and nothing else")
    func part() {
        let part = Self.order.encodedSend(id: "x").part([1])
        #expect(part.recipients == ["bob"])
        #expect(part.contents.count == 1)
        #expect(part.shares == [[0]])
        #expect(part.contents[0].envelope.starts(with: "id=x/2\n".utf8))
    }

    @Test("anything else is no encodedSend, and does no harm")
    func damaged() {
        let whole = Self.order.encodedSend(id: "x").encoded
        for count in 0..<whole.count - 1 where EncodedSend(encoded: Array(whole.prefix(count))) != nil {
            // Only a whole recipient can be missing.
            #expect(EncodedSend(encoded: Array(whole.prefix(count)))?.recipients == ["alice"])
        }
        var generator = SplitMix(seed: 1)
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
