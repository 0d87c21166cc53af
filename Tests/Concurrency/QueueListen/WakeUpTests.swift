import Hiredis
import TestRandom
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    /// Small messages are delivered in wake-ups. The saved scripts are counted, and forged wake-ups must
    /// have no effect.
    @Suite("Wake-ups", .serialized)
    struct WakeUpTests {
        /// The delivery to a listener that waits during a send, the number of scripts, and the
        /// delivery after it.
        private static func listening(
            limit: Int = 1000, maxBytes: Int = 1 << 20, to messages: [Message]
        ) async throws -> (delivery: Delivery, scripts: Int, next: String) {
            // Periodic checks are scripts, too.
            try await withOffice(configure: { $0.recheckInterval = .seconds(3600) }) { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send("before", to: "alice")
                let cursor = try await mailbox.look().cursor
                let waiting = Task {
                    try await mailbox.listen(after: cursor, limit: limit, maxBytes: maxBytes)
                }
                try await office.untilWaiting(1, at: "alice")
                let before = try await mailScriptCalls(redis)
                try await office.send(messages, to: ["alice"])
                let delivery = try await waiting.value
                let count = try await mailScriptCalls(redis) - before
                return (delivery, count, try await mailbox.look(after: delivery.cursor).word)
            }
        }

        @Test("a small message arrives in its wake-up: the send is the only script")
        func oneMessage() async throws {
            let message = Message(text: "hi", type: "t", headers: ["h": "v"], ttl: .seconds(60), collapseKey: "k")
            let (delivery, scripts, next) = try await Self.listening(to: [message])
            #expect(scripts == 1)
            let received = try #require(delivery.messages.first)
            #expect(received.text == "hi" && received.type == "t" && received.headers == ["h": "v"])
            #expect(received.collapseKey == "k" && received.index == 2 && received.cursor == delivery.cursor)
            #expect(delivery.skipped == 0)
            // The mailbox accepts the cursor.
            #expect(next == "timedOut")
        }

        @Test("several small messages arrive in their wake-up, in order")
        func severalMessages() async throws {
            let (delivery, scripts, next) = try await Self.listening(to: (0..<10).map { Message(text: "\($0)") })
            #expect(scripts == 1)
            #expect(delivery.messages.map(\.index) == Array(2...11))
            #expect(delivery.messages.map(\.text) == (0..<10).map { "\($0)" })
            #expect(next == "timedOut")
        }

        @Test("large messages are read, and more messages than the limit are read in parts")
        func reads() async throws {
            let large = try await Self.listening(to: [Message(bytes: Array(repeating: 1, count: 2000))])
            #expect(large.delivery.messages.map(\.body.count) == [2000])
            #expect(large.scripts == 2)
            let several = try await Self.listening(limit: 1, to: [Message(text: "a"), Message(text: "b")])
            #expect(several.delivery.word == "a" && several.next == "b" && several.scripts == 2)
            let bytes = try await Self.listening(maxBytes: 1, to: [Message(text: "a"), Message(text: "b")])
            #expect(bytes.delivery.word == "a" && bytes.next == "b" && bytes.scripts == 2)
            // One message is always delivered.
            let one = try await Self.listening(maxBytes: 1, to: [Message(text: "a")])
            #expect(one.delivery.word == "a" && one.scripts == 1)
        }

        @Test("of several messages with one collapse key in one send, the last is delivered and the others are counted")
        func collapsed() async throws {
            let (delivery, _, next) = try await Self.listening(
                to: ["a", "b", "c"].map { Message(text: $0, collapseKey: "k") })
            #expect(delivery.word == "c" && delivery.skipped == 2 && next == "timedOut")
        }

        @Test("the first listener of a new mailbox reads once, although its own read causes a wake-up")
        func announcement() async throws {
            try await withOffice(configure: { $0.recheckInterval = .seconds(3600) }) { office, redis, _ in
                let first = Task { try await office.mailbox("warm").listen() }
                try await office.untilWaiting(1, at: "warm")
                let before = try await mailScriptCalls(redis)
                let others = (0..<20).map { number in Task { try await office.mailbox("\(number)").listen() } }
                try await office.untilWaiting(21, at: "warm")
                #expect(try await mailScriptCalls(redis) - before == 20)
                for waiting in others + [first] { waiting.cancel() }
            }
        }

        @Test("one send to many listeners of a process notifies them all without another script")
        func crowd() async throws {
            try await withOffice(configure: { $0.recheckInterval = .seconds(3600) }) { office, redis, _ in
                let names = (0..<200).map { "user-\($0)" }
                // Loads the script into the server.
                try await office.send("first", to: "nobody")
                let waiting = names.map { name in Task { try await office.mailbox(name).listen() } }
                try await office.untilWaiting(200, at: names[0])
                let before = try await mailScriptCalls(redis)
                try await office.send("all", to: names[0], names[1], names[2])
                try await office.send([Message(text: "all")], to: Array(names[3...]))
                for task in waiting { #expect(try await task.value.word == "all") }
                #expect(try await mailScriptCalls(redis) - before == 2)
            }
        }

        @Test("a forged or damaged wake-up delivers nothing, because it lacks the epoch or the tag")
        func forged() async throws {
            try await withOffice { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send("a", to: "alice")
                let cursor = try await mailbox.look().cursor
                let waiting = Task { try await mailbox.listen(after: cursor) }
                try await office.untilWaiting(1, at: "alice")
                func word(_ bytes: [UInt8]) -> [UInt8] { [UInt8(bytes.count & 0xFF), UInt8(bytes.count >> 8)] + bytes }
                func number(_ value: Int) -> [UInt8] { (0..<6).map { UInt8(value >> (8 * $0) & 0xFF) } }
                let head = [UInt8(ascii: "M")] + number(2) + number(0) + number(1) + UInt64(7).bigEndianBytes
                let body = number(0) + [0] + Array("forged".utf8)
                func wakeUp(epoch: UInt64, index: Int, tag: UInt64) -> [UInt8] {
                    word(Array("alice".utf8))
                        + word(
                            epoch.bigEndianBytes + number(index) + tag.bigEndianBytes + number(index + 1)
                                + UInt64(7).bigEndianBytes + word(head) + word(body))
                }
                let genuine = wakeUp(epoch: cursor.epoch, index: cursor.index, tag: cursor.tag)
                let forged = [
                    wakeUp(epoch: cursor.epoch &+ 1, index: cursor.index, tag: cursor.tag),
                    wakeUp(epoch: cursor.epoch, index: cursor.index, tag: cursor.tag &+ 1),
                    wakeUp(epoch: cursor.epoch, index: cursor.index + 1, tag: cursor.tag),
                    [], [0], [5, 0], Array("alice\n".utf8), Array(genuine.prefix(40)), Array(genuine.dropFirst()),
                ]
                let channel = mailbox.partition.keys.wakeUpChannel(of: mailbox.partition.process)
                for bytes in forged {
                    #expect(try await redis.send("PUBLISH", .string(channel), .bytes(bytes)).integer == 1)
                }
                try await office.send("b", to: "alice")
                #expect(try await waiting.value.word == "b")
            }
        }

        @Test("decoding arbitrary bytes does not trap")
        func garbled() {
            var generator = SplitMix(seed: testSeed(default: 3))
            for _ in 0..<20_000 {
                let count = Int.random(in: 0...90, using: &generator)
                _ = MailWakeUp.decode(
                    (0..<count).map { _ in
                        Bool.random(using: &generator)
                            ? UInt8.random(in: 0...3, using: &generator) : .random(in: 0...255, using: &generator)
                    })
            }
        }
    }
}
