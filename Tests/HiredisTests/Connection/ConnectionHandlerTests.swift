import NIOCore
import NIOEmbedded
import NIOConcurrencyHelpers
import Testing

@testable import Hiredis

@Suite("A connection's handler", .timeLimit(.minutes(10)))
struct ConnectionHandlerTests {
    // MARK: Writes

    @Test("what has gathered in the outbox is one write and one flush")
    func batch() async throws {
        let connection = try await TestedConnection()
        var pending: [PendingReply] = []
        for number in 0..<50 { pending.append(try await connection.submit(["ECHO", .integer(number)])) }
        #expect(try await connection.arrived().isEmpty)
        try await connection.takeOutbox()
        #expect(try await connection.flushes == 1)
        let arrived = try await connection.arrived()
        #expect(arrived.map { $0.array?.last?.integer } == Array(0..<50))
        try await connection.answer(bytes: (0..<50).flatMap { RESPValue.integer($0).wire })
        for (number, reply) in pending.enumerated() { #expect(await reply.value.value == .integer(number)) }
        try await connection.takeOutbox()
        #expect(try await connection.flushes == 1)
    }

    @Test("what few tasks on the event loop submit in one turn is one write and one flush")
    func turn() async throws {
        let connection = try await TestedConnection()
        // Not alone, so that nobody has a reason to write at once.
        let owed = try await connection.send(["A"])
        let (first, firstReply) = await makeCaller()
        let (second, secondReply) = await makeCaller()
        try await connection.onLoop { handler in
            for (id, caller) in [first, second].enumerated() {
                let submission = Submission(id: UInt64(1000 + id), caller: caller, expectedReplies: 1, timeout: nil)
                handler.submit(submission) { $0.writeCommand(["GET", .integer(id)]) }
            }
        }
        await connection.loop.run()
        #expect(try await connection.flushes == 2)
        #expect(try await connection.arrived().count == 3)
        try await connection.answer(.null, .integer(0), .integer(1))
        #expect(await owed.value.value == .null)
        #expect(await firstReply.value.value == .integer(0))
        #expect(await secondReply.value.value == .integer(1))
    }

    @Test("many commands of one turn are written in shares that grow with what is under way, in order")
    func shares() async throws {
        let connection = try await TestedConnection()
        var replies: [PendingReply] = []
        var callers: [Caller] = []
        for _ in 0..<1000 {
            let (caller, reply) = await makeCaller()
            callers.append(caller)
            replies.append(reply)
        }
        try await connection.onLoop { [callers] handler in
            for (id, caller) in callers.enumerated() {
                let submission = Submission(id: UInt64(id), caller: caller, expectedReplies: 1, timeout: nil)
                handler.submit(submission) { $0.writeCommand(["GET", .integer(id)]) }
            }
        }
        // The first one was alone, then four times 16, then each time a third of what is under way.
        #expect(try await connection.flushes == 1 + 4 + 9)
        await connection.loop.run()
        #expect(try await connection.flushes == 1 + 4 + 9 + 1)
        #expect(try await connection.arrived().map { $0.array?.last?.integer } == Array(0..<1000))
        try await connection.answer(bytes: (0..<1000).flatMap { RESPValue.integer($0).wire })
        for (number, reply) in replies.enumerated() { #expect(await reply.value.value == .integer(number)) }
    }

    @Test("a channel that is not writable holds everything until it is, and then gets it at once, in order")
    func notWritable() async throws {
        let connection = try await TestedConnection()
        try await connection.setWritable(false)
        let first = try await connection.send(["A"])
        let second = try await connection.submit(["B"], from: .loop)
        let third = try await connection.send(["C"])
        await connection.loop.run()
        #expect(try await connection.arrived().isEmpty)
        try await connection.setWritable(true)
        #expect(try await connection.flushes == 1)
        #expect(try await connection.arrived().map { $0.array?.first?.string } == ["A", "B", "C"])
        try await connection.answer(.integer(1), .integer(2), .integer(3))
        for (number, reply) in [first, second, third].enumerated() {
            #expect(await reply.value.value == .integer(number + 1))
        }
    }

    @Test("commands that were still held when the connection ended have not run, those sent before may have")
    func heldAtTheEnd() async throws {
        let connection = try await TestedConnection()
        let sent = try await connection.send(["A"])
        try await connection.setWritable(false)
        let held = try await connection.send(["B"])
        let neverTaken = try await connection.submit(["C"])
        try await connection.channel.close()
        #expect(await sent.value.error?.mayHaveRun == true)
        for reply in [held, neverTaken] {
            let error = await reply.value.error
            #expect(error?.code == .connectionLost)
            #expect(error?.mayHaveRun == false)
        }
        #expect(try await connection.arrived().count == 1)
    }

    @Test("a connection that breaks in the midst of a write may have run what was written")
    func breaksInWrite() async throws {
        let connection = try await TestedConnection(wire: .breaksOnFlush)
        let reply = try await connection.send(["INCR", "n"])
        let error = await reply.value.error
        #expect(error?.code == .connectionLost)
        #expect(error?.mayHaveRun == true)
    }

    // MARK: Deadlines

    @Test("a deadline passes at its time for a command behind a stalled one, whose late reply goes to settle")
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

    @Test("a moment before the deadline the reply is still delivered")
    func justInTime() async throws {
        let connection = try await TestedConnection(silenceLimit: nil)
        let reply = try await connection.send(["A"], timeout: .seconds(5))
        await connection.loop.advanceTime(by: .seconds(5) - .nanoseconds(1))
        try await connection.answer(.integer(1))
        #expect(await reply.value.value == .integer(1))
        await connection.loop.advanceTime(by: .seconds(5))
        #expect(try await connection.isOpen())
    }

    @Test("a nearer deadline that comes later is not overlooked, nor are those after it", arguments: [true, false])
    func nearerDeadline(isOnLoop: Bool) async throws {
        let connection = try await TestedConnection(silenceLimit: nil)
        var pending: [PendingReply] = []
        for seconds in [60, 5, 30] {
            let origin = isOnLoop ? TestedConnection.Origin.loop : .elsewhere
            pending.append(try await connection.submit(["A"], timeout: .seconds(Int64(seconds)), from: origin))
            if !isOnLoop { try await connection.takeOutbox() }
        }
        for index in [1, 2, 0] {
            // Each in its turn: whoever is not due yet would fail the wait by never coming.
            await connection.loop.advanceTime(to: .uptimeNanoseconds(UInt64([60, 5, 30][index]) * 1_000_000_000))
            #expect(await pending[index].value.error?.code == .timedOut)
        }
        try await connection.answer(.null, .null, .null)
        #expect(try await connection.isOpen())
    }

    @Test("a deadline passes for a command that could not be written yet")
    func deadlineOfHeld() async throws {
        let connection = try await TestedConnection(silenceLimit: nil)
        try await connection.setWritable(false)
        let held = try await connection.send(["A"], timeout: .seconds(5))
        await connection.loop.advanceTime(by: .seconds(5))
        let error = await held.value.error
        #expect(error?.code == .timedOut)
        // Its bytes stay in the buffer and will be sent.
        #expect(error?.mayHaveRun == true)
        try await connection.setWritable(true)
        #expect(try await connection.arrived().count == 1)
    }

    @Test(
        "the longest timeout that can be said is no timeout",
        arguments: [TimeAmount.nanoseconds(.max), .hours(.max / 3_600_000_000_000)])
    func endless(timeout: TimeAmount) async throws {
        let connection = try await TestedConnection(silenceLimit: nil)
        let reply = try await connection.send(["A"], timeout: timeout)
        await connection.loop.advanceTime(by: .hours(1000))
        try await connection.answer(.integer(1))
        #expect(await reply.value.value == .integer(1))
    }

    // MARK: Silence

    @Test("a server that owes a reply and is silent for the limit is taken for dead")
    func silent() async throws {
        let connection = try await TestedConnection(silenceLimit: .seconds(30))
        let first = try await connection.send(["A"])
        let second = try await connection.send(["B"])
        await connection.loop.advanceTime(by: .seconds(30))
        for reply in [first, second] {
            let error = await reply.value.error
            #expect(error?.code == .connectionLost)
            #expect(error?.mayHaveRun == true)
        }
        #expect(try await !connection.isOpen())
    }

    @Test("any reply, or part of one, is a sign of life", arguments: [":1\r\n", "$3\r\nab"])
    func signOfLife(part: String) async throws {
        let connection = try await TestedConnection(silenceLimit: .seconds(30))
        let first = try await connection.send(["A"])
        let second = try await connection.send(["B"])
        await connection.loop.advanceTime(by: .seconds(29))
        try await connection.answer(bytes: part.utf8)
        await connection.loop.advanceTime(by: .seconds(29))
        #expect(try await connection.isOpen())
        await connection.loop.advanceTime(by: .seconds(1))
        #expect(try await !connection.isOpen())
        _ = await (first.value, second.value)
    }

    @Test("a server that owes nothing may be silent for ever, and is watched again from the next command on")
    func idle() async throws {
        let connection = try await TestedConnection(silenceLimit: .seconds(30))
        let first = try await connection.send(["A"])
        try await connection.answer(.integer(1))
        #expect(await first.value.value == .integer(1))
        await connection.loop.advanceTime(by: .hours(1))
        #expect(try await connection.isOpen())
        let second = try await connection.send(["B"])
        await connection.loop.advanceTime(by: .seconds(29))
        #expect(try await connection.isOpen())
        await connection.loop.advanceTime(by: .seconds(1))
        #expect(await second.value.error?.code == .connectionLost)
    }

    @Test("without a limit, as on a lane, a server may owe a reply for ever")
    func lane() async throws {
        let connection = try await TestedConnection(silenceLimit: nil)
        let reply = try await connection.send(["BRPOP", "list", "0"])
        await connection.loop.advanceTime(by: .hours(100))
        try await connection.answer(.integer(1))
        #expect(await reply.value.value == .integer(1))
    }

    // MARK: Cancel

    @Test("a cancelled command fails at once, its neighbours get their own replies, and its reply goes to settle")
    func cancelled() async throws {
        let settled = NIOLockedValueBox<[RESPValue]>([])
        let connection = try await TestedConnection()
        let before = try await connection.send(["A"])
        let victim = try await connection.send(["B"], id: 77) { late in settled.withLockedValue { $0.append(late) } }
        let after = try await connection.send(["C"])
        try await connection.onLoop { $0.cancel(77) }
        #expect(await victim.value.error?.code == .cancelled)
        try await connection.answer(.integer(1), .integer(2), .integer(3))
        #expect(await before.value.value == .integer(1))
        #expect(await after.value.value == .integer(3))
        #expect(settled.withLockedValue { $0 } == [.integer(2)])
        try await connection.onLoop { $0.cancel(77) }
    }

    // MARK: What ends a connection

    @Test("a reply beyond the limits closes with .replyTooLarge and fails everyone")
    func tooLarge() async throws {
        let connection = try await TestedConnection(limits: ReplyLimits(elements: 3))
        let first = try await connection.send(["A"])
        let second = try await connection.send(["B"])
        let third = try await connection.send(["C"])
        try await connection.answer(bytes: ":1\r\n*4\r\n".utf8)
        #expect(await first.value.value == .integer(1))
        for reply in [second, third] {
            let error = await reply.value.error
            #expect(error?.code == .replyTooLarge)
            #expect(error?.mayHaveRun == true)
        }
        #expect(try await !connection.isOpen())
        #expect(try await connection.submit(["D"]).value.error?.code == .replyTooLarge)
    }

    @Test("what is no RESP closes with .protocolViolation")
    func malformed() async throws {
        let connection = try await TestedConnection()
        let reply = try await connection.send(["A"])
        try await connection.answer(bytes: "HTTP/1.1 400 Bad Request\r\n".utf8)
        #expect(await reply.value.error?.code == .protocolViolation)
        #expect(try await !connection.isOpen())
    }

    @Test("a reply that nobody asked for closes; an error among them is the reason")
    func unexpected() async throws {
        let connection = try await TestedConnection()
        try await connection.answer(.integer(1))
        #expect(try await !connection.isOpen())
        #expect(try await connection.submit(["A"]).value.error?.code == .protocolViolation)

        let refused = try await TestedConnection()
        try await refused.answer(.error("ERR max number of clients reached"))
        let error = try await refused.submit(["A"]).value.error
        #expect(error?.code == .serverError)
        #expect(error?.message == "ERR max number of clients reached")
    }

    @Test("the end is told once, with its first reason, before any caller hears of it")
    func endIsToldOnce() async throws {
        let connection = try await TestedConnection()
        let reply = try await connection.send(["A"])
        try await connection.onLoop { handler in
            handler.close(RedisError(.clientStopped, "first"))
            handler.close(RedisError(.connectionLost, "second"))
        }
        #expect(await reply.value.error?.message == "first")
        try await connection.onLoop { $0.close(RedisError(.connectionLost, "third")) }
        var ends = connection.ended.makeAsyncIterator()
        #expect(await ends.next()?.message == "first")
        let late = try await connection.submit(["B"], from: .loop).value.error
        #expect(late?.code == .clientStopped)
        #expect(late?.mayHaveRun == false)
        #expect(try await connection.arrived().count == 1)
    }

    @Test("while the channel is still closing, the first reason stays the reason, and replies still arrive")
    func slowClose() async throws {
        let connection = try await TestedConnection(wire: .closesSlowly)
        let first = try await connection.send(["A"])
        let second = try await connection.send(["B"])
        try await connection.onLoop { handler in
            handler.close(RedisError(.clientStopped, "first"))
            handler.close(RedisError(.connectionLost, "second"))
        }
        try await connection.answer(.integer(1))
        #expect(await first.value.value == .integer(1))
        try await connection.finishClosing()
        #expect(await second.value.error?.message == "first")
    }

    // MARK: Drain

    @Test("a draining connection closes with the last reply that it is owed, and not before")
    func drain() async throws {
        let connection = try await TestedConnection()
        let first = try await connection.send(["A"])
        // Not yet taken when the drain begins.
        let second = try await connection.submit(["B"])
        try await connection.onLoop { $0.closeWhenDrained() }
        #expect(try await connection.arrived().count == 2)
        try await connection.answer(.integer(1))
        #expect(await first.value.value == .integer(1))
        #expect(try await connection.isOpen())
        try await connection.answer(.integer(2))
        #expect(await second.value.value == .integer(2))
        #expect(try await !connection.isOpen())
    }

    @Test("an idle connection that drains closes at once")
    func drainIdle() async throws {
        let connection = try await TestedConnection()
        try await connection.onLoop { $0.closeWhenDrained() }
        #expect(try await !connection.isOpen())
    }

    @Test("who is called back with a refusal and sends again at once does so without end, and not within one call")
    func refusedAgain() async throws {
        let connection = try await TestedConnection()
        let owed = try await connection.send(["A"])
        try await connection.onLoop { $0.closeWhenDrained() }
        let refusals = NIOLockedValueBox(0)
        try await connection.onLoop { Self.sendAgain(NIOLoopBound($0, eventLoop: connection.loop), refusals) }
        await connection.loop.run()
        #expect(refusals.withLockedValue { $0 } == 100_000)
        try await connection.answer(.integer(1))
        #expect(await owed.value.value == .integer(1))
    }

    private static func sendAgain(_ handler: NIOLoopBound<ConnectionHandler>, _ refusals: NIOLockedValueBox<Int>) {
        let caller = Caller(
            answer: .call { _ in
                let count = refusals.withLockedValue { count in
                    count += 1
                    return count
                }
                if count < 100_000 { sendAgain(handler, refusals) }
            })
        handler.value.submit(Submission(id: RedisConnection.makeID(), caller: caller, expectedReplies: 1)) {
            $0.writeCommand(["PING"])
        }
    }

    @Test("what a draining connection refuses is not sent", arguments: [true, false])
    func refusedWhileDraining(isOnLoop: Bool) async throws {
        let connection = try await TestedConnection()
        let owed = try await connection.send(["A"])
        try await connection.onLoop { $0.closeWhenDrained() }
        let refused = try await connection.submit(["INCR", "n"], from: isOnLoop ? .loop : .elsewhere)
        try await connection.takeOutbox()
        await connection.loop.run()
        let error = await refused.value.error
        #expect(error?.code == .clientStopped)
        #expect(error?.mayHaveRun == false)
        #expect(try await connection.arrived() == [.array([.bytes([65])])])
        try await connection.answer(.integer(1))
        #expect(await owed.value.value == .integer(1))
    }

    // MARK: Pushed replies

    @Test("a connection that was taken over pushes what comes, as much as came at once, and asks nobody")
    func takenOver() async throws {
        let pushed = NIOLockedValueBox<[[RESPValue]]>([])
        let connection = try await TestedConnection()
        try await connection.onLoop { handler in
            handler.receive = { replies in pushed.withLockedValue { $0.append(replies) } }
            handler.write([["SUBSCRIBE", "a"], ["PING"]])
        }
        #expect(try await connection.arrived().count == 2)
        try await connection.answer(.integer(1), .integer(2))
        try await connection.answer(bytes: ":3".utf8)
        try await connection.answer(bytes: "\r\n".utf8)
        #expect(pushed.withLockedValue { $0 } == [[.integer(1), .integer(2)], [.integer(3)]])
        #expect(try await connection.isOpen())
    }
}
