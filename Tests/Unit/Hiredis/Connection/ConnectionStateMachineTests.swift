import NIOCore
import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("The connection state machine")
struct ConnectionStateMachineTests {
    private func second(_ number: UInt64) -> NIODeadline { .uptimeNanoseconds(number * 1_000_000_000) }

    @Test("replies are matched to commands in the order of sending")
    func order() throws {
        let machine = MachineBox()
        for (id, name) in ["a", "b", "c"].enumerated() { machine.enqueue(UInt64(id), name, now: second(0)) }
        machine.wroteAll()
        for (index, name) in ["a", "b", "c"].enumerated() {
            let got = try #require(machine.received(.integer(index)).delivered)
            #expect(got == (name, .integer(index)))
        }
        #expect(machine.isIdle)
    }

    @Test("a pipeline gets all its replies, including errors, when the last one arrives")
    func pipeline() throws {
        let machine = MachineBox()
        machine.enqueue(1, "pipeline", replies: 3, now: second(0))
        machine.enqueue(2, "next", now: second(0))
        machine.wroteAll()
        for reply in [RESPValue.integer(1), .error("ERR no")] {
            let action = machine.received(reply)
            #expect(action.delivered == nil && action.settled == nil && !action.isUnexpected)
        }
        let got = try #require(machine.received(.null).delivered)
        #expect(got == ("pipeline", .array([.integer(1), .error("ERR no"), .null])))
        #expect(machine.received(.status("OK")).delivered?.0 == "next")
    }

    @Test("a cancelled command keeps its place in the order, and its reply goes to settle")
    func cancelled() throws {
        let machine = MachineBox()
        machine.enqueue(1, "a", now: second(0))
        machine.enqueue(2, "b", now: second(0))
        machine.wroteAll()
        let failure = try #require(machine.cancel(1))
        #expect(failure.context == "a")
        #expect(failure.error.code == .cancelled)
        #expect(failure.error.mayHaveRun)
        #expect(machine.count == 2)
        let late = try #require(machine.received(.integer(1)).settled)
        #expect(late == ("a", .integer(1)))
        let own = try #require(machine.received(.integer(2)).delivered)
        #expect(own == ("b", .integer(2)))
    }

    @Test(
        "100,000 commands that are not quite in the order of their ids are cancelled in linear time",
        .timeLimit(.minutes(1)))
    func manyCancelled() {
        let machine = MachineBox()
        let ids = (0..<100_000).map { UInt64($0 ^ 5) }
        for id in ids { machine.enqueue(id, "\(id)", now: second(0)) }
        for id in ids.reversed() where machine.cancel(id)?.context != "\(id)" {
            Issue.record("another command than \(id) was cancelled")
            return
        }
    }

    @Test("a repeated, late or unmatched cancel has no effect")
    func cancelledInVain() {
        let machine = MachineBox()
        machine.enqueue(1, "a", now: second(0))
        machine.wroteAll()
        #expect(machine.cancel(7) == nil)
        #expect(machine.cancel(1) != nil)
        #expect(machine.cancel(1) == nil)
        #expect(machine.received(.null).settled != nil)
        #expect(machine.cancel(1) == nil)
    }

    @Test("only the command whose deadline has passed times out, even behind one without a deadline")
    func deadlineBehind() {
        let machine = MachineBox()
        machine.enqueue(1, "stalled", now: second(0))
        machine.enqueue(2, "hurried", deadline: second(5), now: second(0))
        machine.wroteAll()
        #expect(machine.nextDeadline == second(5))
        #expect(machine.expire(now: second(4)).isEmpty)
        let failures = machine.expire(now: second(5))
        #expect(failures.map(\.context) == ["hurried"])
        #expect(failures.first?.error.code == .timedOut)
        #expect(failures.first?.error.mayHaveRun == true)
        #expect(machine.nextDeadline == .distantFuture)
        #expect(machine.expire(now: second(100)).isEmpty)
        #expect(machine.received(.integer(1)).delivered?.0 == "stalled")
        #expect(machine.received(.integer(2)).settled?.0 == "hurried")
        #expect(machine.nextDeadline == nil)
    }

    @Test("after a close, written commands may have run, and unwritten ones have not")
    func close() {
        let machine = MachineBox()
        machine.enqueue(1, "written", now: second(0))
        machine.wroteAll()
        machine.enqueue(2, "held", now: second(0))
        let failures = machine.close(RedisError(.connectionLost, "gone"))
        #expect(failures.map(\.context) == ["written", "held"])
        #expect(failures.map(\.error.mayHaveRun) == [true, false])
        #expect(machine.close(RedisError(.connectionLost, "again")).isEmpty)
    }

    @Test("the error of an unfinished pipeline contains the server's last error reply")
    func lastWords() {
        let machine = MachineBox()
        machine.enqueue(1, "login", replies: 2, now: second(0))
        machine.wroteAll()
        _ = machine.received(.error("ERR max number of clients reached"))
        let failures = machine.close(RedisError(.connectionLost, "gone"))
        #expect(failures.first?.error.message.contains("max number of clients") == true)
    }

    @Test("a closed connection refuses commands with its reason, and they have not run")
    func refusedAfterClose() throws {
        let machine = MachineBox()
        _ = machine.close(RedisError(.replyTooLarge, "too much", mayHaveRun: true))
        let (name, error) = try #require(machine.enqueue(1, "late", now: second(0)))
        #expect(name == "late")
        #expect(error.code == .replyTooLarge)
        #expect(!error.mayHaveRun)
    }

    @Test("a reply before any command is written is unexpected")
    func unexpected() {
        let machine = MachineBox()
        #expect(machine.received(.integer(1)).isUnexpected)
        machine.enqueue(1, "held", now: second(0))
        #expect(machine.received(.integer(1)).isUnexpected)
    }

    @Test("draining refuses new commands and ends with the last reply, including late ones")
    func drain() throws {
        let machine = MachineBox()
        machine.enqueue(1, "a", now: second(0))
        machine.enqueue(2, "b", now: second(0))
        machine.wroteAll()
        #expect(machine.drain() == .none)
        let (_, error) = try #require(machine.enqueue(3, "late", now: second(0)))
        #expect(error.code == .clientStopped)
        #expect(!error.mayHaveRun)
        #expect(machine.cancel(2) != nil)
        #expect(!machine.isDrained)
        _ = machine.received(.integer(1))
        #expect(!machine.isDrained)
        _ = machine.received(.integer(2))
        #expect(machine.isDrained)
    }

    @Test("draining an idle connection closes it immediately")
    func drainIdle() {
        let machine = MachineBox()
        #expect(machine.drain() == .close)
        #expect(machine.drain() == .none)
    }

    @Test("silence starts when the first outstanding command is sent or the last bytes arrive")
    func silence() {
        let machine = MachineBox()
        #expect(machine.silentSince == nil)
        machine.enqueue(1, "a", now: second(1))
        #expect(machine.silentSince == nil)
        machine.wroteAll()
        #expect(machine.silentSince == second(1))
        machine.enqueue(2, "b", now: second(5))
        machine.wroteAll()
        #expect(machine.silentSince == second(1))
        machine.heard(now: second(7))
        #expect(machine.silentSince == second(7))
        _ = machine.received(.integer(1))
        #expect(machine.silentSince == second(7))
        _ = machine.received(.integer(2))
        #expect(machine.silentSince == nil)
        machine.enqueue(3, "c", now: second(20))
        machine.wroteAll()
        #expect(machine.silentSince == second(20))
    }

    @Test("after the limit, a server counts as dead with the fifth look, however late the looks are")
    func looks() {
        let machine = MachineBox()
        let limit = TimeAmount.seconds(16)
        #expect(machine.lookForSilence(limit, now: second(0)) == .allowed)
        machine.enqueue(1, "a", now: second(1))
        machine.wroteAll()
        #expect(machine.lookForSilence(nil, now: second(900)) == .allowed)
        #expect(machine.lookForSilence(limit, now: second(2)) == .lookAgain(at: second(17)))
        // A pause of hours counts as one look.
        #expect(machine.lookForSilence(limit, now: second(9000)) == .lookAgain(at: second(9001)))
        #expect(machine.lookForSilence(limit, now: second(9000)) == .lookAgain(at: second(9001)))
        #expect(machine.lookForSilence(limit, now: second(9100)) == .lookAgain(at: second(9101)))
        machine.heard(now: second(9100))
        #expect(machine.lookForSilence(limit, now: second(9101)) == .lookAgain(at: second(9116)))
        for time in UInt64(0)..<4 {
            #expect(machine.lookForSilence(limit, now: second(9116 + time)) == .lookAgain(at: second(9117 + time)))
        }
        #expect(machine.lookForSilence(limit, now: second(9120)) == .dead(limit))
    }

    @Test("a heartbeat's limit is its timeout, but at least a second", arguments: [(0.3, 1), (1, 1), (5, 5)])
    func heartbeatLimit(timeout: Double, limit: Int64) {
        var command: RedisCommand = ["EVALSHA"]
        let timeout = TimeAmount.milliseconds(Int64(timeout * 1000))
        #expect(command.silenceLimit(timeout) == nil)
        command.isHeartbeat = true
        #expect(command.silenceLimit(nil) == nil)
        #expect(command.silenceLimit(timeout) == .seconds(limit))
    }
}

/// A wrapper, because #expect cannot use the noncopyable state machine.
private final class MachineBox {
    typealias Machine = ConnectionStateMachine<String>
    private var machine = Machine()

    var isIdle: Bool { machine.isIdle }
    var count: Int { machine.count }
    var isDrained: Bool { machine.isDrained }
    var nextDeadline: NIODeadline? { machine.nextDeadline }
    var silentSince: NIODeadline? { machine.silentSince }

    /// - Returns: the refused command and the reason, if any.
    @discardableResult
    func enqueue(
        _ id: UInt64, _ name: String, replies: Int = 1, deadline: NIODeadline = .distantFuture, now: NIODeadline
    ) -> (String, RedisError)? {
        let slot = Machine.Slot(id: id, context: name, expectedReplies: replies, deadline: deadline)
        return if case .fail(let name, let error) = machine.enqueue(slot, now: now) { (name, error) } else { nil }
    }

    func wroteAll() { machine.wroteAll() }
    func heard(now: NIODeadline) { machine.heard(now: now) }
    func lookForSilence(_ limit: TimeAmount?, now: NIODeadline) -> Machine.Silence {
        machine.lookForSilence(limit, now: now)
    }
    func received(_ reply: RESPValue) -> Machine.ReplyAction { machine.received(reply) }
    func cancel(_ id: UInt64) -> Machine.Failure? { machine.cancel(id) }
    func expire(now: NIODeadline) -> [Machine.Failure] { machine.expire(now: now) }
    func drain() -> Machine.DrainAction { machine.drain() }
    func close(_ error: RedisError) -> [Machine.Failure] { machine.close(error) }
}

extension ConnectionStateMachine<String>.ReplyAction {
    fileprivate var delivered: (String, RESPValue)? {
        if case .deliver(let name, let value) = self { (name, value) } else { nil }
    }

    fileprivate var settled: (String, RESPValue)? {
        if case .settle(let name, let value) = self { (name, value) } else { nil }
    }

    fileprivate var isUnexpected: Bool {
        if case .unexpected = self { true } else { false }
    }
}
