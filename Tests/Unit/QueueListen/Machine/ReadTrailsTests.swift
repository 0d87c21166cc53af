// What a device skips when Redis has lost its position, and what it does not.
import CoordinationBase
import Testing

@testable import QueueListen

@Suite("What devices have received lately") struct ReadTrailsTests {
    private let request = ListenRequest(mailbox: "m", device: "d", maxMessages: 10, maxBytes: 1000)

    private func cursor(_ index: Int, _ tag: UInt64? = nil) -> Cursor {
        Cursor(epoch: 1, index: index, tag: tag ?? UInt64(index))
    }

    /// A reply with messages after an index. Their tags are their indices, and their ids are those of `ids`.
    private func reply(after start: Int, ids: [String], tag: UInt64 = 0) -> ReadReply {
        var reply = ReadReply(.ok, position: cursor(start))
        for (offset, id) in ids.enumerated() {
            let index = start + 1 + offset
            func number(_ value: Int) -> [UInt8] { (0..<6).map { UInt8(value >> (8 * $0) & 0xFF) } }
            let head =
                [UInt8(ascii: "M")] + number(index) + number(0) + number(1) + (UInt64(index) + tag).bigEndianBytes
            let body = number(0) + [0] + Envelope.encode(Message(text: id), id: id)
            reply.add(StoredMessage(head: head, body: body)!, now: 1)
        }
        return reply
    }

    private func request(at cursor: Cursor) -> ListenRequest {
        var request = request
        request.cursor = cursor
        return request
    }

    /// The texts of a reply that a call returns.
    private func receive(
        _ trails: inout ReadTrails, _ reply: ReadReply, now: Duration = .zero
    ) -> (texts: [String], skipped: Int) {
        var reply = reply
        trails.receive(&reply, of: request, now: now)
        return (reply.messages.map(\.text), reply.skipped)
    }

    @Test("a device goes back to the first position that Redis has, and skips what it has received")
    func skips() {
        var trails = ReadTrails()
        #expect(receive(&trails, reply(after: 3, ids: ["a", "b", "c"])).texts == ["a", "b", "c"])
        #expect(trails.rewind(request(at: cursor(6)), to: cursor(2), now: .zero) == cursor(3))
        // Another message has the place of b, and b is sent again.
        let (texts, skipped) = receive(&trails, reply(after: 3, ids: ["a", "new", "b", "c", "d"], tag: 100))
        #expect(texts == ["new", "d"])
        #expect(skipped == 3)
    }

    @Test("what a caller has not taken over is delivered again")
    func notTakenOver() {
        var trails = ReadTrails()
        _ = receive(&trails, reply(after: 3, ids: ["a", "b", "c"]))
        #expect(trails.rewind(request(at: cursor(4)), to: cursor(3), now: .zero) == cursor(3))
        #expect(receive(&trails, reply(after: 3, ids: ["a", "b", "c"], tag: 100)).texts == ["b", "c"])
    }

    @Test("a call that does not return its new position is followed by one with the old position")
    func notReturned() {
        var trails = ReadTrails()
        _ = receive(&trails, reply(after: 3, ids: ["a", "b", "c"]))
        for _ in 0..<2 {
            #expect(trails.rewind(request(at: cursor(6)), to: cursor(3), now: .zero) == cursor(3))
            #expect(receive(&trails, reply(after: 3, ids: ["a", "new"], tag: 100)).texts == ["new"])
        }
    }

    @Test("a position that the device has not received, or whose beginning is not known, is a fork")
    func unknown() {
        var trails = ReadTrails()
        #expect(trails.rewind(request(at: cursor(6)), to: cursor(2), now: .zero) == nil)
        _ = receive(&trails, reply(after: 3, ids: ["a", "b", "c"]))
        #expect(trails.rewind(request(at: cursor(6, 9)), to: cursor(2), now: .zero) == nil)
        #expect(trails.rewind(request(at: cursor(3)), to: cursor(2), now: .zero) == nil)
        // Redis has deleted another message than the device has received.
        #expect(trails.rewind(request(at: cursor(6)), to: cursor(5, 9), now: .zero) == nil)
        #expect(trails.rewind(request(at: cursor(6)), to: cursor(5), now: .zero) == cursor(5))
    }

    @Test("a device that goes back, or is notified of a gap, receives everything")
    func everything() {
        for isGap in [false, true] {
            var trails = ReadTrails()
            _ = receive(&trails, reply(after: 3, ids: ["a", "b"]))
            _ = trails.rewind(request(at: cursor(5)), to: cursor(3), now: .zero)
            if isGap { _ = receive(&trails, ReadReply(.reset, position: cursor(0))) }
            #expect(receive(&trails, reply(after: isGap ? 3 : 2, ids: ["a", "b"])).texts == ["a", "b"])
        }
    }

    @Test("messages are forgotten after a time, but not while a connection is new")
    func time() {
        for isNew in [false, true] {
            var trails = ReadTrails()
            _ = receive(&trails, reply(after: 3, ids: ["a"]))
            let later = ReadTrails.time + .seconds(1)
            if isNew { trails.reconnected(now: later) }
            _ = receive(&trails, reply(after: 4, ids: ["b"]), now: later)
            #expect(trails.rewind(request(at: cursor(5)), to: cursor(2), now: later) == cursor(isNew ? 3 : 4))
        }
    }

    @Test("the oldest messages are forgotten beyond the capacity")
    func capacity() {
        var trails = ReadTrails()
        for index in 0..<ReadTrails.capacity + 10 { _ = receive(&trails, reply(after: index, ids: ["\(index)"])) }
        let end = cursor(ReadTrails.capacity + 10)
        #expect(trails.rewind(request(at: end), to: cursor(0), now: .zero) == cursor(10))
    }
}
