import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("The handler of a connection", .timeLimit(.minutes(10)))
struct ConnectionHandlerTests {
    // MARK: Replicas

    @Test(
        "a connection to a master closes when the server refuses a write because it is a replica",
        arguments: [
            "READONLY You can't write against a read only replica.",
            "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write against a read only replica.",
        ])
    func demoted(message: String) async throws {
        let connection = try await TestedConnection(leavesReplica: true)
        let refused = try await connection.send(["SET", "key", "value"])
        let inFlight = try await connection.send(["SET", "key", "value"])
        try await connection.answer(.error(message))
        #expect(await refused.value.value == .error(message))
        let error = await inFlight.value.error
        #expect(error?.code == .connectionLost && error?.mayHaveRun == true)
        #expect(try await !connection.isOpen())
    }

    @Test("a connection to one server stays open when it is a replica")
    func replica() async throws {
        let connection = try await TestedConnection()
        let refused = try await connection.send(["SET", "key", "value"])
        try await connection.answer(.error("READONLY You can't write against a read only replica."))
        #expect(await refused.value.value?.errorMessage?.hasPrefix("READONLY") == true)
        #expect(try await connection.isOpen())
    }

    // MARK: Writes

    @Test("the contents of the outbox are sent with one write and one flush")
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

    @Test("a few commands submitted in one turn of the event loop are sent with one write and one flush")
    func turn() async throws {
        let connection = try await TestedConnection()
        // A single command would be written immediately.
        let owed = try await connection.send(["A"])
        let (first, firstReply) = await makeCaller()
        let (second, secondReply) = await makeCaller()
        try await connection.onLoop { handler in
            for (id, caller) in [first, second].enumerated() {
                let commands: [RedisCommand] = [["GET", .integer(id)]]
                handler.submit(Submission(id: UInt64(1000 + id), caller: caller, for: commands), commands)
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

    @Test("many commands of one event-loop turn are written in order, in batches that grow with the commands in flight")
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
                let commands: [RedisCommand] = [["GET", .integer(id)]]
                handler.submit(Submission(id: UInt64(id), caller: caller, for: commands), commands)
            }
        }
        // The first command alone, then four batches of 16, then batches of a third of the commands in flight.
        #expect(try await connection.flushes == 1 + 4 + 9)
        await connection.loop.run()
        #expect(try await connection.flushes == 1 + 4 + 9 + 1)
        #expect(try await connection.arrived().map { $0.array?.last?.integer } == Array(0..<1000))
        try await connection.answer(bytes: (0..<1000).flatMap { RESPValue.integer($0).wire })
        for (number, reply) in replies.enumerated() { #expect(await reply.value.value == .integer(number)) }
    }

    @Test("commands are held while the channel is not writable, then written together in order")
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

    @Test("when the connection closes, held commands have not run, and sent ones may have run")
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

    @Test("commands may have run when the connection breaks during their write")
    func breaksInWrite() async throws {
        let connection = try await TestedConnection(wire: .breaksOnFlush)
        let reply = try await connection.send(["INCR", "n"])
        let error = await reply.value.error
        #expect(error?.code == .connectionLost)
        #expect(error?.mayHaveRun == true)
    }

    // MARK: Cancellation

    @Test("a cancelled command fails immediately, and its reply goes to settle, not to other commands")
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

    @Test("a cancellation that overtakes its command on the way to the event loop is not lost")
    func overtaken() async throws {
        let connection = try await TestedConnection()
        // Nobody has told the event loop to look into the outbox.
        let victim = try await connection.submit(["A"], id: 77)
        try await connection.onLoop { $0.cancel(77) }
        #expect(await victim.value.error?.code == .cancelled)
    }

    // MARK: End of a connection

    @Test("a reply beyond the limits closes with .replyTooLarge and fails all commands")
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

    @Test("invalid RESP closes with .protocolViolation")
    func malformed() async throws {
        let connection = try await TestedConnection()
        let reply = try await connection.send(["A"])
        try await connection.answer(bytes: "HTTP/1.1 400 Bad Request\r\n".utf8)
        #expect(await reply.value.error?.code == .protocolViolation)
        #expect(try await !connection.isOpen())
    }

    @Test("an unexpected reply closes the connection; if it is an error, it is the reason")
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

    @Test("onClose is called once, with the first reason, before any command fails")
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

    @Test("while the channel closes, the first reason is kept and replies are still delivered")
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

    // MARK: Draining

    @Test("a draining connection closes after the last outstanding reply")
    func drain() async throws {
        let connection = try await TestedConnection()
        let first = try await connection.send(["A"])
        // Still in the outbox when draining starts.
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

    @Test("draining an idle connection closes it immediately")
    func drainIdle() async throws {
        let connection = try await TestedConnection()
        try await connection.onLoop { $0.closeWhenDrained() }
        #expect(try await !connection.isOpen())
    }

    @Test("a caller that sends again from each refusal callback is not called recursively")
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
        let commands: [RedisCommand] = [["PING"]]
        handler.value.submit(Submission(id: RedisConnection.makeID(), caller: caller, for: commands), commands)
    }

    @Test("a command that a draining connection refuses is not sent", arguments: [true, false])
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

    @Test("a connection in push mode delivers replies in the batches in which they arrive")
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
