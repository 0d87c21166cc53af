import Foundation
import Hiredis
import TestRandom
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("Mailbox", .serialized)
    struct MailboxTests {
        @Test("messages are delivered in order with contiguous indices, equal ones too")
        func order() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send([Message(text: "a"), Message(text: "a"), Message(text: "b")], to: ["alice"])
                let receipt = try await office.send("a", to: "alice")
                #expect(receipt.indices == ["alice": 4...4])
                let delivery = try await mailbox.look()
                #expect(delivery.word == "a a b a")
                #expect(delivery.messages.map(\.index) == [1, 2, 3, 4])
                #expect(Set(delivery.messages.map(\.id)).count == 4)
                #expect(delivery.cursor.index == 4)
            }
        }

        @Test("type, headers and arbitrary bytes arrive unchanged")
        func content() async throws {
            try await withOffice { office, _, _ in
                let bytes: [UInt8] = [0, 10, 10, 255, 13, 61]
                let headers = ["language": "en=US", "x": ""]
                try await office.send(Message(bytes: bytes, type: "raw", headers: headers), to: "alice")
                try await office.send(Message(bytes: []), to: "alice")
                try await office.send(try Message(json: ["one": 1], type: nil), to: "alice")
                let messages = try await office.mailbox("alice").look().messages
                #expect(messages[0].body == bytes && messages[0].type == "raw" && messages[0].headers == headers)
                #expect(messages[1].body.isEmpty && messages[1].type == nil && messages[1].headers.isEmpty)
                #expect(try messages[2].decode(as: [String: Int].self) == ["one": 1])
                #expect(throws: QueueListenError.self) { try messages[2].decode(as: Int.self) }
            }
        }

        @Test("a JSON message has the type that the sender names, and the coders can be configured")
        func coders() async throws {
            try await withOffice { office, _, _ in
                let date = Date(timeIntervalSince1970: 1_000_000)
                let encoder = JSONEncoder()
                encoder.dateEncodingStrategy = .iso8601
                try await office.send(try Message(json: [date], type: "dates", encoder: encoder), to: "alice")
                try await office.send(try Message(json: [date], type: nil), to: "alice")
                let messages = try await office.mailbox("alice").look().messages
                #expect(messages.map(\.type) == ["dates", nil])
                #expect(messages[0].text == "[\"1970-01-12T13:46:40Z\"]")
                let decoder = JSONDecoder()
                decoder.dateDecodingStrategy = .iso8601
                #expect(try messages[0].decode(as: [Date].self, decoder: decoder) == [date])
                #expect(try messages[1].decode() == [date])
                let error = #expect(throws: QueueListenError.self) { try messages[0].decode(as: [Date].self) }
                #expect(error?.code == .undecodable)
            }
        }

        @Test("a sequence throws its error typed, and is read in the caller's isolation")
        func typedSequence() async throws {
            try await withOffice { office, _, _ in
                try await office.send([Message(text: "a"), Message(text: "b")], to: ["alice"])
                let reader = Reader()
                try await reader.read(try office.mailbox("alice").messages(), count: 2)
                #expect(await reader.texts == ["a", "b"])
                let failed = Reader()
                do throws(QueueListenError) {
                    try await failed.read(try office.mailbox("alice").messages(limit: 0), count: 1)
                    Issue.record("a limit of 0 is accepted")
                } catch { #expect(error.code == .invalidArgument) }
                #expect(await failed.texts.isEmpty)
            }
        }

        private actor Reader {
            private(set) var texts: [String] = []

            func read(_ messages: MailboxMessages, count: Int) async throws(QueueListenError) {
                for try await event in messages {
                    if case .message(let message) = event { texts.append(message.text) }
                    if texts.count == count { return }
                }
            }
        }

        @Test("unacknowledged messages are delivered again, acknowledged ones are deleted")
        func acknowledge() async throws {
            try await withOffice { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send([Message(text: "a"), Message(text: "b"), Message(text: "c")], to: ["alice"])
                let first = try await mailbox.look(limit: 2)
                #expect(first.word == "a b")
                #expect(try await mailbox.look(limit: 2).word == "a b")
                #expect(try await redis.send("LLEN", "ql:{default:0}:mail:alice").integer == 2 * 3)
                let second = try await mailbox.look(after: first.cursor)
                #expect(second.word == "c")
                #expect(try await mailbox.count == 1)
                // An older cursor revokes no acknowledgement.
                #expect(try await mailbox.look(after: first.cursor).word == "c")
                #expect(try await mailbox.acknowledge(second.cursor))
                #expect(try await mailbox.count == 0)
                #expect(try await mailbox.look(after: first.cursor).word == "truncated 4")
                #expect(try await mailbox.look(after: second.cursor).word == "timedOut")
                #expect(try await mailbox.look().word == "timedOut")
                try await office.send("d", to: "alice")
                #expect(try await mailbox.look(after: second.cursor).messages.map(\.index) == [4])
            }
        }

        @Test("a cursor of another mailbox acknowledges nothing")
        func foreignCursor() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send([Message(text: "a"), Message(text: "b")], to: ["alice"])
                let cursor = try await mailbox.look().cursor
                let ahead = Cursor(epoch: cursor.epoch, index: 3, tag: cursor.tag)
                let elsewhere = Cursor(epoch: cursor.epoch + 1, index: 1, tag: cursor.tag)
                let other = Cursor(epoch: cursor.epoch, index: 1, tag: cursor.tag)
                for (cursor, word) in [(ahead, "forked"), (elsewhere, "reset"), (other, "forked")] {
                    let delivery = try await mailbox.look(after: cursor)
                    #expect(delivery.word == word)
                    #expect(try await !mailbox.acknowledge(cursor))
                    #expect(try await mailbox.look(after: delivery.cursor).word == "a b")
                }
            }
        }

        @Test("a printed cursor can be read back, and other texts are rejected")
        func token() throws {
            let cursor = Cursor(epoch: 1, index: 42, tag: .max)
            #expect(Cursor("\(cursor)") == cursor)
            #expect("\(cursor)" == "0000000000000001-42-ffffffffffffffff")
            for text in [
                "", "1-2-3", "0000000000000001--1-ffffffffffffffff", "0000000000000001-x-ffffffffffffffff",
                "+000000000000001-1-ffffffffffffffff", "0000000000000001-1-ffffffffffffffff-",
            ] { #expect(Cursor(text) == nil, "\(text)") }
        }

        @Test("the largest possible numbers and durations work")
        func extremes() async throws {
            let longest = Duration.seconds(Int64.max)
            try await withOffice(configure: {
                ($0.callTimeout, $0.recheckInterval, $0.pollInterval) = (longest, longest, longest)
                ($0.subscriptionLinger, $0.sendIDLifetime, $0.takeOverAfter) = (longest, longest, longest)
                ($0.limits.ttl, $0.limits.deviceTTL) = (longest, longest)
                ($0.limits.maxAge, $0.limits.backlogAge) = (longest, longest)
                ($0.limits.maxMessages, $0.limits.maxBytes, $0.limits.backlogCount) = (
                    100_000_000, 1 << 30, 100_000_000
                )
                $0.maxMessageBytes = 1 << 20
            }) { office, _, _ in
                let mailbox = try office.mailbox("alice")
                let waiting = Task { try await mailbox.listen(maxBytes: .max, timeout: longest) }
                try await office.untilWaiting(1, at: "alice")
                try await office.send(Message(text: "a", ttl: longest), to: "alice")
                let delivery = try await waiting.value
                #expect(delivery.word == "a")
                try await office.send([Message(text: "b")], to: ["alice", "bob"], id: "x")
                #expect(try await mailbox.look(after: delivery.cursor).word == "b")
                #expect(try await mailbox.acknowledge(delivery.cursor))
                try await mailbox.setLimits(office.configuration.limits)
                try await office.send("c", to: "alice")
                #expect(try await mailbox.inspect()?.last == 3)
                #expect(try await mailbox.peek(after: .max).isEmpty)
            }
        }

        @Test("a namespace that contains a colon is refused, also with an accent on the colon")
        func namespaces() {
            for name in ["a:b", "a:\u{301}b", "", "a{b", "a\nb"] {
                #expect(throws: QueueListenError.self, "\(name)") {
                    try PostOfficeConfiguration().validate(namespace: name)
                }
            }
            #expect(throws: Never.self) { try PostOfficeConfiguration().validate(namespace: "caf\u{E9}") }
        }

        @Test("a message ends the wait of a listener")
        func wake() async throws {
            try await withOffice { office, _, _ in
                for round in 0..<50 {
                    let waiting = Task { try await office.mailbox("alice").listen() }
                    try await office.untilWaiting(1, at: "alice")
                    try await office.send("\(round)", to: "alice")
                    let delivery = try await waiting.value
                    #expect(delivery.word == "\(round)")
                    try await office.mailbox("alice").acknowledge(delivery.cursor)
                }
            }
        }

        @Test("a listener without a message times out")
        func timeout() async throws {
            try await withOffice { office, _, _ in
                let delivery = try await office.mailbox("alice").listen(timeout: .milliseconds(20))
                #expect(delivery.word == "timedOut")
                try await office.send("a", to: "alice")
                #expect(try await office.mailbox("alice").listen(after: delivery.cursor).word == "a")
            }
        }

        @Test("an inspection counts a process that has stopped listening until its registration expires")
        func listeningProcesses() async throws {
            try await withOffice(configure: { $0.recheckInterval = .seconds(1) }) { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                let first = Task { try await mailbox.listen(timeout: .seconds(60)) }
                try await until("it is registered") { try await mailbox.inspect()?.listeningProcesses == 1 }
                try await office.send("0", to: "alice")
                let cursor = try await first.value.cursor
                try await until("the registration has expired") {
                    try await mailbox.inspect()?.listeningProcesses == 0
                }
                // Another process still counts.
                try await withPostOffice(redis: redis) { other in
                    let waiting = Task { try await other.mailbox("alice").listen(after: cursor, timeout: .seconds(60)) }
                    try await until("it is registered") { try await mailbox.inspect()?.listeningProcesses == 1 }
                    try await office.send("a", to: "alice")
                    #expect(try await waiting.value.word == "a")
                }
            }
        }

        @Test("a cancelled listener loses no message and leaves no state behind")
        func cancel() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                for round in 0..<50 {
                    let waiting = Task { try await mailbox.listen() }
                    if round % 2 == 0 { try await office.untilWaiting(1, at: "alice") }
                    waiting.cancel()
                    #expect(await errorOf { _ = try await waiting.value }?.code == .cancelled)
                }
                try await office.untilWaiting(0, at: "alice")
                try await office.send("a", to: "alice")
                #expect(try await mailbox.look().word == "a")
            }
        }

        @Test("a cancellation at any moment loses no message and leaves no state behind")
        func cancelAnywhere() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                let sending = Task {
                    for number in 0..<300 { try await office.send("\(number)", to: "alice") }
                }
                var generator = SplitMix(seed: testSeed(default: 7))
                var cursor: Cursor?
                var texts: [String] = []
                while texts.count < 300 {
                    let last = cursor
                    let polling = Task { try await mailbox.listen(after: last, limit: 3) }
                    for _ in 0..<Int.random(in: 0..<40, using: &generator) { await Task.yield() }
                    if Bool.random(using: &generator) { polling.cancel() }
                    do {
                        let delivery = try await polling.value
                        texts += delivery.messages.map(\.text)
                        cursor = delivery.cursor
                    } catch let error as QueueListenError where error.code == .cancelled {}
                }
                try await sending.value
                #expect(texts == (0..<300).map { "\($0)" })
                #expect(await mailbox.listeners.isEmpty)
            }
        }

        @Test("each device gets every message at its own speed, and messages are kept for the slowest")
        func devices() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                _ = try await mailbox.look(device: "slow")
                try await office.send([Message(text: "a"), Message(text: "b")], to: ["alice"])
                let fast = try await mailbox.look(device: "fast")
                #expect(fast.word == "a b")
                #expect(try await mailbox.look(after: fast.cursor, device: "fast").word == "timedOut")
                #expect(try await mailbox.count == 2)
                let slow = try await mailbox.look(device: "slow", limit: 1)
                #expect(slow.word == "a")
                try await mailbox.acknowledge(slow.cursor, device: "slow")
                #expect(try await mailbox.count == 1)
                let devices = try await mailbox.devices()
                #expect(devices.map(\.name).sorted() == ["fast", "slow"])
                #expect(devices.first { $0.name == "slow" }?.acknowledged == slow.cursor)
                // Without a cursor a device continues at its acknowledged position.
                #expect(try await mailbox.look(device: "slow").word == "b")
                #expect(try await mailbox.look(device: "fast").word == "timedOut")
            }
        }

        @Test("a newer call for a device supersedes the older one, in one process and in two")
        func superseded() async throws {
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis) { here in
                    try await withPostOffice(redis: other) { there in
                        let older = Task { try await here.mailbox("alice").listen() }
                        try await here.untilWaiting(1, at: "alice")
                        let newer = Task { try await here.mailbox("alice").listen() }
                        #expect(try await older.value.word == "superseded")
                        try await here.untilWaiting(1, at: "alice")
                        let newest = Task { try await there.mailbox("alice").listen() }
                        #expect(try await newer.value.word == "superseded")
                        try await here.send("a", to: "alice")
                        #expect(try await newest.value.word == "a")
                    }
                }
            }
        }

        @Test("deleting a mailbox resets its listeners")
        func delete() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                #expect(try await mailbox.delete() == nil)
                try await office.send([Message(text: "a"), Message(text: "b")], to: ["alice"])
                let cursor = try await mailbox.look().cursor
                let waiting = Task { try await mailbox.listen(after: cursor) }
                try await office.untilWaiting(1, at: "alice")
                #expect(try await mailbox.delete() == 0)
                let delivery = try await waiting.value
                #expect(delivery.word == "reset")
                try await office.send("c", to: "alice")
                #expect(try await mailbox.look(after: delivery.cursor).word == "c")
                #expect(try await mailbox.look(after: cursor).word == "reset")
            }
        }

        @Test("mailboxes in several partitions work")
        func severalPartitions() async throws {
            try await withOffice(configure: { $0.partitions = 8 }) { office, redis, _ in
                let names = (0..<20).map { "player \($0)" }
                let listening = try names.map { name in
                    let mailbox = try office.mailbox(name)
                    return Task { try await mailbox.listen() }
                }
                for (name, waiting) in zip(names, listening) {
                    try await office.send(name, to: name)
                    let delivery = try await waiting.value
                    #expect(delivery.word == name)
                }
                let keys = try await redis.send("KEYS", "ql:{default:*}:meta").array?.count
                #expect(keys == 8)
            }
        }

        @Test("listeners are notified when every call starts and ends a subscription")
        func shortSubscriptions() async throws {
            try await withOffice(configure: {
                $0.subscriptionLinger = .zero
                $0.recheckInterval = .seconds(3600)
            }) { office, _, _ in
                let mailbox = try office.mailbox("alice")
                var cursor: Cursor?
                for round in 0..<200 {
                    let waiting = Task { [cursor] in try await mailbox.listen(after: cursor) }
                    // The send arrives before the call waits, while it subscribes, or after.
                    if round % 2 == 0 { try await office.untilWaiting(1, at: "alice") }
                    try await office.send("\(round)", to: "alice")
                    let delivery = try await waiting.value
                    #expect(delivery.word == "\(round)")
                    cursor = delivery.cursor
                }
            }
        }

        @Test("a waiting device is seen at least once an hour, and four times within its lifetime")
        func deviceRefreshInterval() {
            var limits = MailboxLimits()
            #expect(limits.deviceRefreshInterval == .seconds(3600))
            for (ttl, expected) in [(Duration.seconds(8), Duration.seconds(2)), (.seconds(4 * 7200), .seconds(3600))] {
                limits.deviceTTL = ttl
                #expect(limits.deviceRefreshInterval == expected)
            }
            limits.deviceTTL = nil
            #expect(limits.deviceRefreshInterval == .zero)
        }

        @Test("a mailbox with 2^46 messages and 2^47 bytes in its past works")
        func largeNumbers() async throws {
            try await withOffice { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                let (last, sum) = (1 << 46, 1 << 47)
                let make = RedisScript(
                    """
                    return redis.call('HSET', KEYS[1], 'm', struct.pack('<Hc8dc8dc8dddddB', 1, 'an epoch', ARGV[1],
                      'its mark', ARGV[1], 'its mark', ARGV[2], ARGV[2], 0, 0, 0, 0))
                    """)
                _ = try await redis.script(
                    make, keys: ["ql:{default:0}:box:alice"], arguments: [.integer(last), .integer(sum)])
                let receipt = try await office.send([Message(text: "a"), Message(text: "b")], to: ["alice"])
                #expect(receipt.indices["alice"] == last + 1...last + 2)
                let first = try await mailbox.look(limit: 1)
                #expect(first.messages.map(\.index) == [last + 1])
                let second = try await mailbox.look(after: Cursor("\(first.cursor)"))
                #expect(second.messages.map(\.index) == [last + 2])
                #expect(second.word == "b")
                #expect(try await mailbox.look(after: second.cursor).word == "timedOut")
                let inspection = try #require(try await mailbox.inspect())
                #expect(inspection.last == last + 2)
                #expect(inspection.bytes == 0)
            }
        }

        @Test("peek changes nothing")
        func peek() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                #expect(try await mailbox.peek().isEmpty)
                #expect(try await mailbox.inspect() == nil)
                try await office.send([Message(text: "a"), Message(text: "b"), Message(text: "c")], to: ["alice"])
                #expect(try await mailbox.peek(limit: 2).map(\.text) == ["a", "b"])
                #expect(try await mailbox.peek(after: 2).map(\.text) == ["c"])
                let inspection = try #require(try await mailbox.inspect())
                #expect(inspection.count == 3 && inspection.first == 1 && inspection.last == 3)
                #expect(inspection.devices.isEmpty)
            }
        }
    }
}
