import Foundation
import Hiredis
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    /// Full mailboxes, and the steps in which their messages are deleted.
    @Suite("Limits of mailboxes", .serialized)
    struct MailboxLimitTests {
        @Test("a full mailbox refuses a send for all of its recipients")
        func reject() async throws {
            try await withOffice(configure: { $0.limits.maxMessages = 3 }) { office, _, _ in
                try await office.send([Message(text: "a"), Message(text: "b")], to: ["alice"])
                let error = await errorOf {
                    try await office.send([Message(text: "c"), Message(text: "d")], to: ["bob", "alice"])
                }
                #expect(error?.code == .mailboxFull)
                #expect(error?.message.contains("alice") == true)
                #expect(try await office.mailbox("bob").inspect() == nil)
                try await office.send("c", to: "alice")
                let delivery = try await office.mailbox("alice").look()
                #expect(delivery.word == "a b c")
                try await office.mailbox("alice").acknowledge(delivery.cursor)
                try await office.send([Message(text: "d"), Message(text: "e"), Message(text: "f")], to: ["alice"])
            }
        }

        @Test("the refusal of a full mailbox says whether an attempt may still arrive", arguments: [false, true])
        func lateAttempt(isFirstLost: Bool) async throws {
            try await withServer { _, redis, _ in
                let mustLose = Atomic(false)
                let unstable = InterposedRedis(
                    redis,
                    before: { keys in
                        // The keys of a send.
                        guard keys.count == 4, mustLose.exchange(false, ordering: .relaxed) else { return }
                        throw RedisError(.connectionLost, "the connection was lost", mayHaveRun: true)
                    })
                var configuration = PostOfficeConfiguration()
                configuration.limits.maxMessages = 1
                try await withPostOffice(redis: unstable, configuration: configuration) { office in
                    try await office.send("a", to: "alice")
                    mustLose.store(isFirstLost, ordering: .relaxed)
                    let error = await errorOf { try await office.send("b", to: "alice") }
                    #expect(error?.code == .mailboxFull)
                    #expect(error?.mayHaveRun == isFirstLost)
                    #expect(error?.message.contains("may still arrive") == isFirstLost)
                }
            }
        }

        @Test("with dropOldest the oldest messages are deleted, and a reader that has not read them is notified")
        func dropOldest() async throws {
            try await withOffice(configure: {
                $0.limits.maxBytes = 2048
                $0.limits.whenFull = .dropOldest
            }) { office, _, _ in
                let mailbox = try office.mailbox("alice")
                let start = try await mailbox.look().cursor
                for number in 0..<30 {
                    try await office.send(Message(bytes: Array(repeating: UInt8(number), count: 200)), to: "alice")
                }
                let inspection = try #require(try await mailbox.inspect())
                #expect(inspection.bytes <= 2048 && inspection.count >= 5)
                let delivery = try await mailbox.look(after: start)
                #expect(delivery.word == "truncated \(inspection.first)")
                let rest = try await mailbox.look(after: delivery.cursor)
                #expect(rest.messages.map(\.index) == Array(inspection.first...30))
                // The count of bytes returns to zero.
                try await mailbox.acknowledge(rest.cursor)
                #expect(try await mailbox.inspect()?.bytes == 0)
                let error = await errorOf {
                    try await office.send(Message(bytes: .init(repeating: 0, count: 2100)), to: "alice")
                }
                #expect(error?.code == .mailboxFull)
            }
        }

        @Test("much lower limits are enforced by the next send")
        func lowered() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                for start in stride(from: 0, to: 10_000, by: 500) {
                    try await office.send((start..<start + 500).map { Message(text: "\($0)") }, to: ["alice"])
                }
                var limits = MailboxLimits()
                limits.maxMessages = 3
                limits.whenFull = .dropOldest
                try await mailbox.setLimits(limits)
                try await office.send("last", to: "alice")
                #expect(try await mailbox.look().messages.map(\.text) == ["9998", "9999", "last"])
                let bytes = try await mailbox.inspect()?.bytes ?? 0
                #expect(bytes > 3 * 34 && bytes < 3 * 150)
            }
        }

        @Test("a mailbox that is given a time to live does not expire while a device waits for messages")
        func ttl() async throws {
            try await withOffice(configure: { $0.recheckInterval = .seconds(1) }) { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                let cursor = try await mailbox.register()
                let reading = Task { for try await _ in mailbox.messages(after: cursor) {} }
                try await until("it waits") { await mailbox.listeners.waitingCount == 1 }
                var limits = MailboxLimits()
                limits.ttl = .seconds(8)
                try await mailbox.setLimits(limits)
                /// When it expires, by the clock of this process.
                func end() async throws -> ContinuousClock.Instant {
                    let left = try await redis.send("PTTL", "ql:{default:0}:box:alice").integer ?? 0
                    return .now + .milliseconds(left)
                }
                let first = try await end()
                try await until("its life is extended") { try await end() > first + .milliseconds(500) }
                reading.cancel()
                _ = await reading.result
            }
        }

        @Test("with dropOldest a large message takes the place of more small ones than one script deletes")
        func dropMany() async throws {
            try await withOffice(configure: {
                $0.limits.maxBytes = 1 << 20
                $0.limits.whenFull = .dropOldest
            }) { office, _, _ in
                let mailbox = try office.mailbox("alice")
                for start in stride(from: 0, to: 7000, by: 500) {
                    try await office.send((start..<start + 500).map { Message(text: "\($0)") }, to: ["alice"])
                }
                let large = Message(bytes: .init(repeating: 0, count: 1_000_000))
                try await office.send(large, to: "alice")
                let inspection = try #require(try await mailbox.inspect())
                #expect(inspection.last == 7001 && inspection.count < 1000)
                #expect(inspection.bytes <= 1 << 20 && inspection.bytes > 1_000_000)
                // No more are deleted than necessary.
                #expect(inspection.bytes + 100 > 1 << 20)
            }
        }

        @Test("messages with collapse keys make room in steps when one script cannot look at all of them")
        func dropManyCollapsing() async throws {
            try await withOffice { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                for start in stride(from: 0, to: 2560, by: 64) {
                    let messages = (start..<start + 64).map { Message(text: "\($0)", collapseKey: "key \($0 % 2000)") }
                    try await office.send(messages, to: ["alice"])
                }
                var limits = MailboxLimits()
                limits.maxMessages = 2
                limits.whenFull = .dropOldest
                try await mailbox.setLimits(limits)
                try await office.send("last", to: "alice")
                #expect(try await mailbox.look().messages.map(\.text) == ["2559", "last"])
                // The mailbox's state, its device, and the key of the message that is left.
                #expect(try await redis.send("HLEN", "ql:{default:0}:box:alice").integer == 3)
                let cursor = try await mailbox.look().cursor
                try await mailbox.acknowledge(cursor)
                #expect(try await mailbox.inspect()?.bytes == 0)
            }
        }

        @Test("a mailbox that is full of expired messages accepts new ones, however many have expired")
        func dropManyExpired() async throws {
            try await withOffice(configure: { $0.limits.maxMessages = 6000 }) { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                for _ in 0..<12 {
                    try await office.send(
                        (0..<500).map { Message(text: "\($0)", ttl: .milliseconds(1)) }, to: ["alice"])
                }
                _ = try await redis.send("SET", "clock", "x", "PX", "10")
                try await until("the messages have expired") {
                    try await redis.send("EXISTS", "clock").integer == 0
                }
                for start in stride(from: 0, to: 5000, by: 500) {
                    try await office.send((start..<start + 500).map { Message(text: "\($0)") }, to: ["alice"])
                }
                #expect(try await mailbox.count == 6000)
            }
        }

        @Test("messages of many acknowledged pages with collapse keys are deleted in steps")
        func deleteInSteps() async throws {
            try await withOffice { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                for start in stride(from: 0, to: 1920, by: 64) {
                    let messages = (start..<start + 64).map { Message(text: "\($0)", collapseKey: "key \($0)") }
                    try await office.send(messages, to: ["alice"])
                }
                var cursor: Cursor?
                // Another device reads everything before the first one acknowledges anything.
                _ = try await mailbox.look(device: "first")
                for _ in 0..<2 {
                    let page = try await mailbox.look(after: cursor, device: "second")
                    cursor = page.cursor
                }
                let last = try #require(cursor)
                try await mailbox.acknowledge(last, device: "second")
                #expect(try await mailbox.count == 1920)
                try await mailbox.acknowledge(last, device: "first")
                #expect(try await mailbox.count == 1920 - 1024)
                try await mailbox.acknowledge(last, device: "first")
                #expect(try await mailbox.count == 0)
                #expect(try await mailbox.inspect()?.bytes == 0)
                let fields = try await redis.send("HKEYS", "ql:{default:0}:box:alice").array?.compactMap(\.string)
                #expect(fields?.sorted() == ["d", "h", "m"])
            }
        }

        @Test("a mailbox's own limits apply to all post offices, and can be removed")
        func ownLimits() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                var limits = MailboxLimits()
                limits.maxMessages = 1
                limits.backlogAge = .seconds(5)
                limits.ttl = nil
                try await mailbox.setLimits(limits)
                #expect(try await mailbox.inspect()?.limits == limits)
                try await office.send("a", to: "alice")
                #expect(try await mailbox.inspect()?.ttl == nil)
                let error = await errorOf { try await office.send("b", to: "alice") }
                #expect(error?.code == .mailboxFull)
                try await mailbox.setLimits(nil)
                try await office.send("b", to: "alice")
                #expect(try await mailbox.inspect()?.ttl != nil)
                #expect(try await mailbox.look().word == "a b")
            }
        }

        @Test("replaced messages are the first to be deleted from a full mailbox")
        func collapseWhenFull() async throws {
            try await withOffice(configure: { $0.limits.maxMessages = 2 }) { office, _, _ in
                for position in 0..<20 {
                    try await office.send(Message(text: "at \(position)", collapseKey: "p"), to: "alice")
                }
                #expect(try await office.mailbox("alice").look().messages.map(\.text) == ["at 19"])
            }
        }
    }
}
