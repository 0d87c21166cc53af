import Dispatch
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
import Synchronization
import TestSupport
import Testing

@testable import Hiredis
@testable import HiredisTestSupport

@Suite("The outbox of a connection", .timeLimit(.minutes(10)))
struct OutboxTests {
    @Test("only the first submission of a batch wakes the event loop")
    func first() async {
        let (caller, _) = await makeCaller()
        let outbox = Outbox()
        for _ in 0..<3 {
            guard case .first = outbox.submit(1, caller, ["A"]),
                case .added = outbox.submit(2, caller, ["B"])
            else {
                Issue.record("the submissions were not the first and a later one of a batch")
                return
            }
            guard let batch = outbox.takeBatch() else {
                Issue.record("the outbox is empty")
                return
            }
            #expect(batch.submissions.map(\.id) == [1, 2])
            #expect(String(buffer: batch.bytes) == "*1\r\n$1\r\nA\r\n*1\r\n$1\r\nB\r\n")
            outbox.recycle(batch.submissions)
            #expect(outbox.takeBatch() == nil)
        }
        caller.answer(.success(.null))
    }

    @Test("large commands keep their place between small ones, and are not copied")
    func large() async throws {
        let (caller, _) = await makeCaller()
        let outbox = Outbox()
        let large = RedisCommand(["SET", .bytes([UInt8](repeating: 7, count: Outbox.largeSize))])
        let commands: [RedisCommand] = [["A"], large, ["B"], ["C"], large, large]
        for (id, command) in commands.enumerated() {
            _ = outbox.submit(UInt64(id), caller, command)
        }
        let batch = try #require(outbox.takeBatch())
        #expect(batch.pieces.count == 5)
        var expected = ByteBuffer()
        expected.write(commands, size: commands.encodedSize)
        #expect(batch.bytes == expected)
        caller.answer(.success(.null))
    }

    @Test("close returns the submissions that were not taken, and later ones are refused with the first reason")
    func close() async {
        let (caller, _) = await makeCaller()
        let outbox = Outbox()
        for id in 1...3 as ClosedRange<UInt64> { _ = outbox.submit(id, caller, ["A"]) }
        #expect(outbox.close(RedisError(.connectionLost, "first")).map(\.id) == [1, 2, 3])
        #expect(outbox.close(RedisError(.connectionLost, "second")).isEmpty)
        guard case .closed(let error) = outbox.submit(4, caller, ["A"]) else {
            Issue.record("a submission was accepted after the end")
            return
        }
        #expect(error.message == "first")
        let left = outbox.take(ByteBufferAllocator())
        #expect(left.submissions.isEmpty && left.pieces.isEmpty)
        caller.answer(.success(.null))
    }

    @Test("no submission of many threads is lost, and each thread's order is kept")
    func threads() async throws {
        let (caller, _) = await makeCaller()
        let outbox = Outbox()
        let (threads, each) = (8, 2000)
        let wakeUps = Atomic<Int>(0)
        let remaining = Atomic<Int>(threads)
        let taken = NIOLockedValueBox<[Outbox.Batch]>([])
        // An additional thread takes batches all the time.
        DispatchQueue.concurrentPerform(iterations: threads + 1) { thread in
            if thread == threads {
                var isLast = false
                while !isLast {
                    isLast = remaining.load(ordering: .acquiring) == 0
                    guard let batch = outbox.takeBatch() else { continue }
                    taken.withLockedValue { $0.append(batch) }
                    outbox.recycle(batch.submissions)
                }
                return
            }
            for number in 0..<each {
                let id = UInt64(thread * each + number)
                if case .first = outbox.submit(id, caller, [.integer(thread), .integer(number)]) {
                    wakeUps.wrappingAdd(1, ordering: .relaxed)
                }
            }
            remaining.wrappingSubtract(1, ordering: .acquiringAndReleasing)
        }
        caller.answer(.success(.null))

        var next = [Int](repeating: 0, count: threads)
        let batches = taken.withLockedValue { $0 }
        for batch in batches {
            let commands = try decode([Array(batch.bytes.readableBytesView)])
            try #require(commands.count == batch.submissions.count)
            for (command, submission) in zip(commands, batch.submissions) {
                let thread = try #require(command.array?[0].integer)
                let number = try #require(command.array?[1].integer)
                #expect(submission.id == UInt64(thread * each + number))
                #expect(number == next[thread], "thread \(thread)")
                next[thread] = number + 1
            }
        }
        #expect(next == [Int](repeating: each, count: threads))
        #expect(wakeUps.load(ordering: .relaxed) == batches.count)
    }

    @Test("many tasks on a connection each get their own reply while others are cancelled or refused")
    func tasks() async throws {
        let connection = try await TestedConnection()
        let channel = connection.channel
        try await connection.loop.executeInContext {
            try channel.pipeline.syncOperations.addHandler(EchoServer(), position: .first)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<16 {
                group.addTask {
                    for number in 0..<100 {
                        let (caller, reply) = await makeCaller()
                        let id = RedisConnection.makeID()
                        let text = "\(task)/\(number)"
                        switch connection.outbox.submit(id, caller, ["ECHO", .string(text)]) {
                        case .first: try await connection.takeOutbox()
                        case .added: break
                        case .closed(let error): throw error
                        }
                        if number % 7 == 0 { try await connection.onLoop { $0.cancel(id) } }
                        // The server replies in the next turn of the event loop.
                        connection.loop.execute {}
                        switch await reply.value {
                        case .success(let value): #expect(value.string == text)
                        case .failure(let error): #expect(error.code == .cancelled && number % 7 == 0)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await connection.isOpen())
    }
}

extension Outbox.Batch {
    fileprivate var bytes: ByteBuffer { pieces.reduce(into: ByteBuffer()) { $0.writeImmutableBuffer($1) } }
}

extension Outbox {
    fileprivate func submit(_ id: UInt64, _ caller: Caller, _ command: RedisCommand) -> Submitted {
        submit(Submission(id: id, caller: caller, for: [command]), [command])
    }

    /// Takes the gathered batch; returns `nil` if there is none.
    fileprivate func takeBatch() -> Batch? {
        let batch: Batch? = take(ByteBufferAllocator())
        return batch?.submissions.isEmpty == false ? batch : nil
    }
}

/// Replies to each command with its second word, in the next turn of the event loop.
private final class EchoServer: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private let decoder = ReplyDecoder()

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        decoder.feed(unwrapOutboundIn(data).readableBytesView)
        let replies = (try? decoder.drain().flatMap { RESPValue.bytes($0.array?.last?.bytes ?? []).wire }) ?? []
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.eventLoop.execute { bound.value.fireChannelRead(NIOAny(ByteBuffer(bytes: replies))) }
    }
}
