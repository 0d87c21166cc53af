// The judge of `redisdc verify`, on histories of barriers and mailboxes written by hand.
import TestSupport
import Testing
import Verification

@Suite("The judge of redisdc verify: barriers and mailboxes")
struct VerifyMailJudgeTests {
    // MARK: Barriers

    private func arrival(
        _ process: Int, operation: Int = 1, _ outcome: Event.Outcome?, generation: UInt64 = 0, place: Int = 0,
        from: Double = 0, to: Double = 1
    ) -> [Event] {
        let call = Event(
            .call, at: at(from), process: process, "barrier", operation: operation, verb: .arrive, limit: 2)
        guard let outcome else { return [call] }
        let isOK = outcome == .ok
        let end = Event(
            .end, at: at(to), process: process, operation: operation, outcome: outcome,
            generation: isOK ? generation : nil, index: isOK ? place : nil)
        return [call, end]
    }

    @Test("a barrier that opens for all of its parties violates nothing")
    func opens() {
        let verdict = judged(arrival(1, .ok) + arrival(2, .ok, place: 1))
        #expect(verdict[.barriers].result == .held)
        #expect(verdict[.barriers].checks == 1)
    }

    @Test("a barrier that opens for too few parties, or for one that had given up, is a violation")
    func tooFew() {
        #expect(judged(arrival(1, .ok))[.barriers].violations == 1)
        #expect(judged(arrival(1, .ok) + arrival(2, Event.Outcome.none))[.barriers].violations == 1)
    }

    @Test("a party without a known outcome may be the missing one, once")
    func unknownParty() {
        for outcome in [Event.Outcome.unknown, nil] {
            let one = arrival(1, .ok) + arrival(2, outcome, to: 0.5)
            #expect(judged(one)[.barriers].result == .held)
            let again = arrival(1, operation: 2, .ok, generation: 1, from: 2, to: 3)
            #expect(judged(one + again)[.barriers].violations == 1)
        }
        #expect(judged(arrival(1, .ok) + arrival(2, nil, from: 1.5))[.barriers].violations == 1, "came too late")
    }

    @Test("a party that passes before another one of its generation has arrived is a violation")
    func tooEarly() {
        let verdict = judged(arrival(1, .ok) + arrival(2, .ok, place: 1, from: 1.5, to: 2))
        #expect(verdict[.barriers].violations == 1)
    }

    @Test("a generation that repeats is a violation, unless one of its parties was notified of a loss")
    func repeated() {
        let both = arrival(1, .ok) + arrival(2, .ok, place: 1)
        let again = arrival(3, .ok, from: 2, to: 3) + arrival(4, .ok, place: 1, from: 2, to: 3)
        #expect(judged(both + again)[.barriers].violations == 1)
        #expect(judged(both + again + [Event(.dataLost, at: at(2), process: 1)])[.barriers].announced == 1)
        #expect(judged(both + again + [Event(.dataLost, at: at(2), process: 9)])[.barriers].violations == 1)
    }

    // MARK: Order

    private func reads(_ process: Int, _ time: Double, device: String = "a", mailbox: String = "mail") -> Event {
        Event(.reads, at: at(time), process: process, mailbox, device: device)
    }

    private func got(
        _ index: Int, _ message: String, _ time: Double, process: Int = 2, device: String = "a",
        mailbox: String = "mail"
    ) -> Event {
        Event(.got, at: at(time), process: process, mailbox, index: index, device: device, message: message)
    }

    private func gap(_ time: Double) -> Event {
        Event(.gap, at: at(time), process: 2, "mail", device: "a", note: "forked")
    }

    private func order(_ events: [Event]) -> Verdict.Row { judged([reads(2, 0)] + events)[.order] }

    @Test("messages in order violate nothing, also when a new reader receives some again")
    func inOrder() {
        let first = [got(1, "1-1-0", 1), got(2, "1-2-0", 2)]
        #expect(order(first + [got(3, "1-3-0", 3)]).result == .held)
        #expect(order(first + [reads(3, 3), got(2, "1-2-0", 4), got(3, "1-3-0", 5)]).result == .held)
    }

    @Test("an index that is left out or repeated is a violation")
    func wrongIndex() {
        #expect(order([got(2, "1-1-0", 1)]).violations == 1, "the first message")
        #expect(order([got(1, "1-1-0", 1), got(3, "1-3-0", 2)]).violations == 1)
        #expect(order([got(1, "1-1-0", 1), got(1, "1-1-0", 2)]).violations == 1, "the same reader")
        // A message was deleted that no reader had acknowledged.
        #expect(order([got(1, "1-1-0", 1), reads(3, 2), got(3, "1-3-0", 3)]).violations == 1)
    }

    @Test("a reader that is superseded although nobody else reads its device is a violation")
    func superseded() {
        func failed(_ note: String) -> Event { Event(.failed, at: at(2), process: 2, note: note) }
        #expect(order([got(1, "1-1-0", 1), failed("superseded")]).violations == 1)
        #expect(order([got(1, "1-1-0", 1), failed("connectionLost")]).result == .held)
    }

    @Test("another message under the same index, or a message under two, is a violation")
    func wrongMessage() {
        let first = [got(1, "1-1-0", 1), reads(3, 2)]
        #expect(order(first + [got(1, "1-2-0", 3)]).violations == 1)
        #expect(order([got(1, "1-1-0", 1), got(2, "1-1-0", 2)]).violations >= 1)
    }

    @Test("a message of a sender before an earlier one of it is a violation")
    func wrongOrder() {
        #expect(order([got(1, "1-2-0", 1), got(2, "1-1-0", 2)]).violations == 1)
        #expect(order([got(1, "1-1-1", 1), got(2, "1-1-0", 2)]).violations == 1)
        #expect(order([got(1, "1-2-0", 1), got(2, "3-1-0", 2)]).result == .held)
    }

    @Test("after a gap other messages may have the indices")
    func afterGap() {
        let before = [got(1, "1-1-0", 1), got(2, "1-2-0", 2)]
        #expect(order(before + [gap(3), got(2, "3-1-0", 4), got(3, "1-2-0", 5)]).result == .held)
    }

    @Test("after a failover messages may have other indices, and come once and in order all the same")
    func afterFailover() {
        func failover(_ time: Double) -> Event { Event(.failover, at: at(time), process: 0) }
        let before = [got(1, "1-1-0", 1), got(2, "1-2-0", 2), got(3, "3-1-0", 3), failover(4)]
        #expect(order(before + [got(3, "1-3-0", 5), got(5, "3-2-0", 6)]).result == .held)
        #expect(order(before + [got(3, "1-2-0", 5)]).violations == 1, "twice")
        #expect(order(before + [got(3, "1-4-0", 5), got(4, "1-3-0", 6)]).violations == 1, "out of order")
        // A new reader may receive what the one before it has not acknowledged.
        #expect(order(before + [reads(3, 5), got(2, "1-2-0", 6), got(4, "1-3-0", 7)]).result == .held)
        // Later the indices are compared again.
        let later = before + [got(3, "1-3-0", 5), got(4, "1-4-0", 40), got(6, "1-5-0", 41)]
        #expect(order(later).violations == 1)
        // The servers may fail over again before all of them have recovered.
        let healthy = Event(.healthy, at: at(35), process: 0)
        #expect(order(later + [healthy]).violations == 0)
        #expect(order(later + [healthy, got(7, "1-6-0", 60), got(9, "1-7-0", 61)]).violations == 1)
    }

    @Test("a send to several recipients may be repeated late after a gap, and no other one")
    func lateAfterGap() {
        func late(to names: [String], sent time: Double) -> Verdict.Row {
            let events = send("1-1", .ok, at: time, to: names) + send("1-2", .ok, at: 3.2, operation: 2)
            return order(events + [gap(3), got(1, "1-2-0", 4), got(2, "1-1-0", 5)])
        }
        #expect(late(to: ["mail", "other"], sent: 1).announced == 1)
        #expect(late(to: ["mail", "other"], sent: 1).violations == 0)
        #expect(late(to: ["mail", "other"], sent: 3.1).violations == 1, "the gap was before it")
        #expect(late(to: ["mail"], sent: 1).violations == 1)
    }

    // MARK: Delivery

    private func send(
        _ message: String, _ outcome: Event.Outcome?, at time: Double, to names: [String] = ["mail"], process: Int = 1,
        operation: Int = 1
    ) -> [Event] {
        let call = Event(
            .call, at: at(time), process: process, operation: operation, verb: .send, count: 1, message: message,
            recipients: names)
        guard let outcome else { return [call] }
        return [call, Event(.end, at: at(time + 0.1), process: process, operation: operation, outcome: outcome)]
    }

    private func drained(_ mailbox: String = "mail") -> Event {
        Event(.drained, at: at(100), process: 0, mailbox, device: "a")
    }

    @Test("a confirmed message that arrives violates nothing, and an unknown one need not arrive")
    func delivered() {
        let confirmed = judged(send("1-1", .ok, at: 1) + [reads(2, 0), got(1, "1-1-0", 2), drained()])
        #expect(confirmed[.delivery].result == .held)
        #expect(confirmed[.delivery].checks == 1)
        #expect(judged(send("1-1", .unknown, at: 1) + [reads(2, 0), drained()])[.delivery].violations == 0)
    }

    @Test("a confirmed message that does not arrive is a violation")
    func notDelivered() {
        #expect(judged(send("1-1", .ok, at: 1) + [reads(2, 0), drained()])[.delivery].violations == 1)
        // A mailbox that was not read to its end is not judged.
        #expect(judged(send("1-1", .ok, at: 1) + [reads(2, 0)])[.delivery].result == .notChecked)
    }

    @Test("a confirmed message that does not arrive is announced by a gap after it, and not by one before it")
    func announcedMessage() {
        let sent = send("1-1", .ok, at: 1) + [reads(2, 0), drained()]
        #expect(judged(sent + [gap(2)])[.delivery].announced == 1)
        #expect(judged(sent + [gap(0.5)])[.delivery].violations == 1)
        #expect(judged(sent + [gap(40)])[.delivery].violations == 1)
    }

    @Test("the last message of a killed sender may be lost when others were notified of a loss")
    func killedSender() {
        let sent = send("1-1", .ok, at: 1) + [reads(2, 0), drained()]
        let killed = Event(.killed, at: at(2), process: 1)
        let notified = Event(.dataLost, at: at(2), process: 5)
        #expect(judged(sent + [killed])[.delivery].violations == 1)
        #expect(judged(sent + [killed, notified])[.delivery].undecided == 1)
        // Its next send to the mailbox would have told the reader.
        let next = send("1-2", .ok, at: 1.5, operation: 2) + [got(1, "1-2-0", 2)]
        #expect(judged(sent + next + [killed, notified])[.delivery].violations == 1)
    }

    @Test("a send that reached one of its recipients must reach the others, confirmed or not")
    func atomicity() {
        let names = ["mail", "other"]
        let readers = [reads(2, 0), reads(2, 0, mailbox: "other"), drained(), drained("other")]
        let sent = send("1-1", .unknown, at: 1, to: names) + readers
        #expect(judged(sent)[.atomicity].checks == 0)
        let one = sent + [got(1, "1-1-0", 2, mailbox: "other")]
        #expect(judged(one)[.atomicity].violations == 1)
        #expect(judged(one + [got(1, "1-1-0", 2)])[.atomicity].result == .held)
        #expect(judged(one + [gap(3)])[.atomicity].announced == 1)
    }
}
