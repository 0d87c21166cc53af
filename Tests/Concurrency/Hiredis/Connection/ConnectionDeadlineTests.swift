import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("The deadlines of a connection's commands, and silent servers", .timeLimit(.minutes(10)))
struct ConnectionDeadlineTests {
    // MARK: Deadlines

    @Test("a command behind a stalled one times out at its deadline, and its late reply goes to settle")
    func deadlineBehind() async throws {
        let settled = NIOLockedValueBox<[RESPValue]>([])
        let connection = try await TestedConnection(silenceLimit: nil)
        let stalled = try await connection.send(["A"])
        let hurried = try await connection.send(["B"], timeout: .seconds(5)) { late in
            settled.withLockedValue { $0.append(late) }
        }
        await connection.loop.advanceTime(by: .seconds(5))
        let error = await hurried.value.error
        #expect(error?.code == .timedOut)
        #expect(error?.mayHaveRun == true)
        try await connection.answer(.integer(1), .integer(2))
        #expect(await stalled.value.value == .integer(1))
        #expect(settled.withLockedValue { $0 } == [.integer(2)])
        #expect(try await connection.isOpen())
    }

    @Test("a reply just before the deadline is delivered")
    func justInTime() async throws {
        let connection = try await TestedConnection(silenceLimit: nil)
        let reply = try await connection.send(["A"], timeout: .seconds(5))
        await connection.loop.advanceTime(by: .seconds(5) - .nanoseconds(1))
        try await connection.answer(.integer(1))
        #expect(await reply.value.value == .integer(1))
        await connection.loop.advanceTime(by: .seconds(5))
        #expect(try await connection.isOpen())
    }

    @Test("deadlines are kept when a later command has an earlier deadline", arguments: [true, false])
    func nearerDeadline(isOnLoop: Bool) async throws {
        let connection = try await TestedConnection(silenceLimit: nil)
        var pending: [PendingReply] = []
        for seconds in [60, 5, 30] {
            let origin = isOnLoop ? TestedConnection.Origin.loop : .elsewhere
            pending.append(try await connection.submit(["A"], timeout: .seconds(Int64(seconds)), from: origin))
            if !isOnLoop { try await connection.takeOutbox() }
        }
        for index in [1, 2, 0] {
            // In this order: a command that is not yet due would never finish the wait.
            await connection.loop.advanceTime(to: .uptimeNanoseconds(UInt64([60, 5, 30][index]) * 1_000_000_000))
            #expect(await pending[index].value.error?.code == .timedOut)
        }
        try await connection.answer(.null, .null, .null)
        #expect(try await connection.isOpen())
    }

    @Test("a command that could not yet be written times out")
    func deadlineOfHeld() async throws {
        let connection = try await TestedConnection(silenceLimit: nil)
        try await connection.setWritable(false)
        let held = try await connection.send(["A"], timeout: .seconds(5))
        await connection.loop.advanceTime(by: .seconds(5))
        let error = await held.value.error
        #expect(error?.code == .timedOut)
        // Its bytes stay in the buffer and are sent later.
        #expect(error?.mayHaveRun == true)
        try await connection.setWritable(true)
        #expect(try await connection.arrived().count == 1)
    }

    @Test(
        "the longest representable timeout never expires",
        arguments: [TimeAmount.nanoseconds(.max), .hours(.max / 3_600_000_000_000)])
    func endless(timeout: TimeAmount) async throws {
        let connection = try await TestedConnection(silenceLimit: nil)
        let reply = try await connection.send(["A"], timeout: timeout)
        await connection.loop.advanceTime(by: .hours(1000))
        try await connection.answer(.integer(1))
        #expect(await reply.value.value == .integer(1))
    }

    // MARK: Silent servers

    @Test("the connection closes when a reply is outstanding and the server is silent for 5/4 of the limit")
    func silent() async throws {
        let connection = try await TestedConnection(silenceLimit: .seconds(32))
        let first = try await connection.send(["A"])
        let second = try await connection.send(["B"])
        await connection.loop.advanceTime(by: .seconds(40) - .nanoseconds(1))
        #expect(try await connection.isOpen())
        await connection.loop.advanceTime(by: .nanoseconds(1))
        for reply in [first, second] {
            let error = await reply.value.error
            #expect(error?.code == .connectionLost)
            #expect(error?.mayHaveRun == true)
        }
        #expect(try await !connection.isOpen())
    }

    @Test(
        "any reply or part of a reply resets the silence limit, also after it has passed",
        arguments: [":1\r\n", "$3\r\nab"], [1, 31, 32, 39])
    func signOfLife(part: String, time: Int64) async throws {
        let connection = try await TestedConnection(silenceLimit: .seconds(32))
        let first = try await connection.send(["A"])
        let second = try await connection.send(["B"])
        await connection.loop.advanceTime(by: .seconds(time))
        try await connection.answer(bytes: part.utf8)
        await connection.loop.advanceTime(by: .seconds(40) - .nanoseconds(1))
        #expect(try await connection.isOpen())
        await connection.loop.advanceTime(by: .nanoseconds(1))
        #expect(try await !connection.isOpen())
        _ = await (first.value, second.value)
    }

    @Test("the deadlines of other commands do not shorten the silence")
    func otherDeadlines() async throws {
        let connection = try await TestedConnection(silenceLimit: .seconds(32))
        var replies = [try await connection.send(["A"])]
        for number in 1...9 {
            replies.append(try await connection.send(["B"], timeout: .seconds(32) + .milliseconds(Int64(number))))
        }
        await connection.loop.advanceTime(by: .seconds(40) - .nanoseconds(1))
        #expect(try await connection.isOpen())
        await connection.loop.advanceTime(by: .nanoseconds(1))
        #expect(try await !connection.isOpen())
        for reply in replies { _ = await reply.value }
    }

    @Test("the silence limit applies only while replies are outstanding")
    func idle() async throws {
        let connection = try await TestedConnection(silenceLimit: .seconds(30))
        let first = try await connection.send(["A"])
        try await connection.answer(.integer(1))
        #expect(await first.value.value == .integer(1))
        await connection.loop.advanceTime(by: .hours(1))
        #expect(try await connection.isOpen())
        let second = try await connection.send(["B"])
        await connection.loop.advanceTime(by: .seconds(37))
        #expect(try await connection.isOpen())
        await connection.loop.advanceTime(by: .seconds(1))
        #expect(await second.value.error?.code == .connectionLost)
    }

    @Test("the connection closes when a heartbeat is outstanding and the server is silent for 5/4 of its timeout")
    func silentHeartbeat() async throws {
        let connection = try await TestedConnection(silenceLimit: .seconds(30))
        let command = try await connection.send(["A"])
        let heartbeat = try await connection.send(["B"], timeout: .seconds(4), silenceLimit: .seconds(4))
        // A reply to another command: the connection works at that time.
        await connection.loop.advanceTime(by: .seconds(3))
        try await connection.answer(.integer(1))
        #expect(await command.value.value == .integer(1))
        await connection.loop.advanceTime(by: .seconds(1))
        #expect(await heartbeat.value.error?.code == .timedOut)
        await connection.loop.advanceTime(by: .seconds(4) - .nanoseconds(1))
        #expect(try await connection.isOpen())
        await connection.loop.advanceTime(by: .nanoseconds(1))
        #expect(try await !connection.isOpen())
    }

    @Test("a heartbeat that is answered leaves the connection's silence limit as it is")
    func answeredHeartbeat() async throws {
        let connection = try await TestedConnection(silenceLimit: .seconds(32))
        let heartbeat = try await connection.send(["B"], timeout: .seconds(5), silenceLimit: .seconds(5))
        let command = try await connection.send(["A"])
        try await connection.answer(.integer(1))
        #expect(await heartbeat.value.value == .integer(1))
        await connection.loop.advanceTime(by: .seconds(40) - .nanoseconds(1))
        #expect(try await connection.isOpen())
        await connection.loop.advanceTime(by: .nanoseconds(1))
        #expect(await command.value.error?.code == .connectionLost)
    }

    @Test("without a silence limit, as on a lane, a reply may be outstanding indefinitely")
    func lane() async throws {
        let connection = try await TestedConnection(silenceLimit: nil)
        let reply = try await connection.send(["BRPOP", "list", "0"])
        await connection.loop.advanceTime(by: .hours(100))
        try await connection.answer(.integer(1))
        #expect(await reply.value.value == .integer(1))
    }
}
