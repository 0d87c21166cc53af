import Testing

@testable import QueueListen

@Suite("Confirmed acknowledgements")
struct ConfirmedAcknowledgementsTests {
    private static func acknowledgement(
        _ device: String, _ index: Int, mailbox: String = "alice", epoch: UInt64 = 1
    ) -> ConfirmedAcknowledgements.Acknowledgement {
        ConfirmedAcknowledgements.Acknowledgement(
            mailbox: mailbox, device: device, cursor: Cursor(epoch: epoch, index: index, tag: UInt64(index)))
    }

    private func devices(_ log: ConfirmedAcknowledgements) -> [String] {
        log.oldestFirst.map { "\($0.mailbox)/\($0.device) \($0.cursor.index)" }
    }

    @Test("the last position of each device of each mailbox is remembered, the oldest first")
    func latest() {
        var log = ConfirmedAcknowledgements(maxAge: .seconds(30))
        log.record(Self.acknowledgement("phone", 1), at: .zero)
        log.record(Self.acknowledgement("laptop", 2), at: .seconds(1))
        log.record(Self.acknowledgement("phone", 3, mailbox: "bob"), at: .seconds(2))
        log.record(Self.acknowledgement("phone", 4), at: .seconds(3))
        // An earlier position arrives late; one in a new epoch counts.
        log.record(Self.acknowledgement("phone", 2), at: .seconds(4))
        log.record(Self.acknowledgement("laptop", 1, epoch: 2), at: .seconds(5))
        #expect(devices(log) == ["bob/phone 3", "alice/phone 4", "alice/laptop 1"])
        log.remove([Self.acknowledgement("phone", 4), Self.acknowledgement("phone", 1, mailbox: "bob")])
        #expect(devices(log) == ["bob/phone 3", "alice/laptop 1"])
    }

    @Test("what is too old, and what exceeds the capacity, is forgotten")
    func bounds() {
        var log = ConfirmedAcknowledgements(maxAge: .seconds(30), capacity: 3)
        for index in 1...5 { log.record(Self.acknowledgement("\(index)", index), at: .seconds(index)) }
        #expect(devices(log) == ["alice/3 3", "alice/4 4", "alice/5 5"])
        log.forgetOld(.seconds(34))
        #expect(devices(log) == ["alice/4 4", "alice/5 5"])
        var none = ConfirmedAcknowledgements(maxAge: .zero)
        none.record(Self.acknowledgement("phone", 1), at: .zero)
        #expect(none.oldestFirst.isEmpty)
    }
}
