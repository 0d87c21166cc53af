import TestRandom
import Testing

@testable import QueueListen

@Suite("Parcel")
struct ParcelTests {
    private static let order: SendOrder = {
        let messages = [
            "alice": [Message("a", timeToLive: .seconds(5)), Message(bytes: [0, 10, 255], collapseKey: "k")],
            "bob": [Message("")],
        ]
        return try! SendOrder(messages, largest: 1000)
    }()

    @Test("what goes into Redis comes out as it was")
    func roundTrip() throws {
        let own = Self.order.parcel(id: "x")
        #expect(Parcel(encoded: own.encoded) == own)
        let same = try SendOrder([Message("a"), Message("b")], to: ["alice", "bob#1"], largest: 1000).parcel(id: "y")
        #expect(same.shares == nil)
        #expect(Parcel(encoded: same.encoded) == same)
    }

    @Test("a part has what its recipients get, in their order, and nothing else")
    func part() {
        let part = Self.order.parcel(id: "x").part([1])
        #expect(part.recipients == ["bob"])
        #expect(part.contents.count == 1)
        #expect(part.shares == [[0]])
        #expect(part.contents[0].envelope.starts(with: "id=x/2\n".utf8))
    }

    @Test("anything else is no parcel, and does no harm")
    func damaged() {
        let whole = Self.order.parcel(id: "x").encoded
        for count in 0..<whole.count - 1 where Parcel(encoded: Array(whole.prefix(count))) != nil {
            // Only a whole recipient can be missing.
            #expect(Parcel(encoded: Array(whole.prefix(count)))?.recipients == ["alice"])
        }
        var generator = SplitMix(seed: 1)
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            guard let parcel = Parcel(encoded: bytes) else { continue }
            #expect(parcel.recipients.indices.allSatisfy { parcel.count(of: $0) > 0 })
        }
    }
}
