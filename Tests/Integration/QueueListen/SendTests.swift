import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("Sending", .serialized)
    struct SendTests {
        @Test("messages reach all recipients once, also those that are named twice")
        func recipients() async throws {
            try await withOffice { office, _, _ in
                let names = (0..<256).map { "player \($0)" }
                let receipt = try await office.send([Message(text: "a"), Message(text: "b")], to: names + names)
                #expect(receipt.indices.count == 256)
                for name in names {
                    #expect(receipt.indices[name] == 1...2)
                    #expect(try await office.mailbox(name).look().word == "a b")
                }
            }
        }

        @Test("each recipient gets its own messages")
        func own() async throws {
            try await withOffice { office, _, _ in
                try await office.send("first", to: "bob")
                let receipt = try await office.send([
                    "alice": [Message(text: "a")], "bob": [Message(text: "b"), Message(text: "c")],
                ])
                #expect(receipt.indices == ["alice": 1...1, "bob": 2...3])
                #expect(try await office.mailbox("alice").look().word == "a")
                #expect(try await office.mailbox("bob").look().word == "first b c")
            }
        }

        @Test("the same send under one id has one effect, and another send under it is refused")
        func id() async throws {
            try await withOffice { office, _, _ in
                let first = try await office.send("a", to: "alice", "bob", id: "order-1")
                try await office.send("b", to: "alice")
                let second = try await office.send("a", to: "alice", "bob", id: "order-1")
                #expect(first == second)
                #expect(first.id == "order-1")
                #expect(try await office.mailbox("alice").look().word == "a b")
                let error = await errorOf { try await office.send("x", to: "alice", "bob", id: "order-1") }
                #expect(error?.code == .conflict)
                let fewer = await errorOf { try await office.send("a", to: "alice", id: "order-1") }
                #expect(fewer?.code == .conflict)
            }
        }

        @Test("a send under a used id that differs from the first one in anything is refused", arguments: sendPairs)
        func conflict(_ pair: SendPair) async throws {
            try await withOffice { office, _, _ in
                for (name, first, second) in [("alice", pair.first, pair.second), ("bob", pair.second, pair.first)] {
                    try await office.send(first, to: [name], id: name)
                    let error = await errorOf { try await office.send(second, to: [name], id: name) }
                    #expect(error?.code == .conflict)
                    try await office.send(first, to: [name], id: name)
                    #expect(try await office.mailbox(name).count == first.count)
                }
            }
        }

        @Test("headers arrive byte by byte, whatever character their names begin with", arguments: headerNames)
        func headers(_ name: String) async throws {
            try await withOffice { office, _, _ in
                let headers = [name: "value", "plain": name, "x" + name: "\u{301}"]
                try await office.send(Message(text: "a", type: name, headers: headers), to: "alice")
                let message = try #require(try await office.mailbox("alice").look().messages.first)
                #expect(message.text == "a" && message.type.map { Array($0.utf8) } == Array(name.utf8))
                let received = message.headers.map { (Array($0.key.utf8), Array($0.value.utf8)) }
                #expect(received.count == headers.count)
                for (key, value) in headers {
                    #expect(received.contains { $0 == Array(key.utf8) && $1 == Array(value.utf8) }, "\(headers)")
                }
            }
        }

        @Test("answers are deleted when they are no longer needed")
        func answers() async throws {
            try await withOffice { office, redis, _ in
                for _ in 0..<200 { try await office.send("a", to: "alice") }
                try await office.send("a", to: "alice", id: "mine")
                let keys = try await redis.send("KEYS", "ql:{default:0}:sent:*").array?.compactMap(\.string) ?? []
                #expect(keys.count == 2)
                for key in keys {
                    #expect(try await redis.send("HLEN", .string(key)).integer ?? 99 <= 65)
                    #expect(try await redis.send("PTTL", .string(key)).integer ?? -1 > 0)
                }
            }
        }

        @Test("invalid arguments are refused, and nothing is sent", arguments: badSends)
        func badInput(_ bad: BadSend) async throws {
            try await withOffice(configure: { $0.maxMessageBytes = 100 }) { office, redis, _ in
                let error = await errorOf { try await bad.body(office) }
                #expect(error?.code == .invalidArgument, "\(bad)")
                #expect(error?.mayHaveRun == false)
                let size = try await redis.send("DBSIZE").integer
                #expect(size == 0)
            }
        }

        @Test("a page has at most 1,000 messages and 1 MiB, whatever the caller asks for")
        func pageLimit() async throws {
            try await withOffice { office, _, _ in
                let (many, large) = (try office.mailbox("many"), try office.mailbox("large"))
                let messages = Array(repeating: Message(text: "a"), count: 600)
                for _ in 0..<2 { try await office.send(messages, to: ["many"]) }
                for _ in 0..<5 {
                    try await office.send(Message(bytes: .init(repeating: 0, count: 300_000)), to: "large")
                }
                #expect(try await many.look(limit: 10_000).messages.count == 1000)
                #expect(try await large.listen(limit: 10_000, maxBytes: .max, timeout: .zero).messages.count == 3)
                #expect(try await large.peek(limit: 10_000, maxBytes: .max).count == 3)
            }
        }

        @Test("a send that one script cannot handle in time is refused, and the error names the limit")
        func tooLarge() async throws {
            try await withOffice { office, redis, _ in
                let half = Message(bytes: .init(repeating: 0, count: 1 << 19))
                let names = (0..<256).map { "\($0)" }
                let refusals: [(String, @Sendable () async throws -> Void)] = [
                    ("at most 1048576", { try await office.send(half, to: "a", "b", "c") }),
                    ("at most 1048576", { try await office.send(["a": [half, half, half]]) }),
                    ("at most 768", { try await office.send((0..<4).map { _ in Message(text: "a") }, to: names) }),
                    ("at most 64", { try await office.send([Message(text: "a", collapseKey: "k")], to: names) }),
                ]
                for (limit, send) in refusals {
                    let error = await errorOf { try await send() }
                    #expect(error?.code == .invalidArgument)
                    #expect(error?.message.contains(limit) == true, "\(error?.message ?? "")")
                }
                #expect(try await redis.send("DBSIZE").integer == 0)
                try await office.send(half, to: "a", "b")
            }
        }

        @Test("a waiting device and its mailbox do not expire")
        func longWait() async throws {
            try await withOffice(configure: {
                // Long enough that a busy machine renews them in time.
                $0.limits.ttl = .seconds(3)
                $0.limits.deviceTTL = .seconds(3)
            }) { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                let cursor = try await mailbox.look().cursor
                let waiting = Task { try await mailbox.listen(after: cursor) }
                try await office.untilWaiting(1, at: "alice")
                _ = try await redis.send("SET", "clock", "x", "PX", "7500")
                try await until("both times to live have passed") {
                    try await redis.send("EXISTS", "clock").integer == 0
                }
                #expect(try await mailbox.devices().map(\.name) == ["default"])
                _ = try await mailbox.look(device: "other")
                #expect(try await mailbox.devices().map(\.name).sorted() == ["default", "other"])
                try await office.send("a", to: "alice")
                #expect(try await waiting.value.word == "a")
            }
        }

        @Test("a later message with the same collapse key replaces an earlier one")
        func collapse() async throws {
            try await withOffice { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                for position in 0..<5 {
                    try await office.send(Message(text: "at \(position)", collapseKey: "position"), to: "alice")
                    try await office.send("chat \(position)", to: "alice")
                }
                let delivery = try await mailbox.look()
                #expect(delivery.messages.map(\.text) == ["chat 0", "chat 1", "chat 2", "chat 3", "at 4", "chat 4"])
                #expect(delivery.skipped == 4)
                #expect(delivery.cursor.index == 10)
                try await mailbox.acknowledge(delivery.cursor)
                #expect(try await mailbox.inspect()?.bytes == 0)
                let fields = try await redis.send("HKEYS", "ql:{default:0}:box:alice").array?.compactMap(\.string)
                #expect(fields?.sorted() == ["d", "h", "m"])
            }
        }

        @Test("an expired message is skipped and counted")
        func expired() async throws {
            try await withOffice(configure: { $0.limits.maxMessages = 3 }) { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send(
                    [Message(text: "a"), Message(text: "b", ttl: .milliseconds(1)), Message(text: "c")], to: ["alice"])
                let sent = try await mailbox.peek().last!.sent
                try await until("the message has expired by the server's clock") {
                    let time = try await redis.send("TIME").array?.compactMap(\.integer) ?? []
                    return Double(time[0]) + Double(time[1]) / 1e6 > sent.timeIntervalSince1970 + 0.003
                }
                let delivery = try await mailbox.look()
                #expect(delivery.word == "a c")
                #expect(delivery.skipped == 1)
                #expect(delivery.cursor.index == 3)
            }
        }

        @Test("a backlog is kept for future devices")
        func backlog() async throws {
            for isByAge in [false, true] {
                try await withOffice(configure: {
                    if isByAge { $0.limits.backlogAge = .seconds(3600) } else { $0.limits.backlogCount = 2 }
                }) { office, _, _ in
                    let mailbox = try office.mailbox("alice")
                    try await office.send([Message(text: "a"), Message(text: "b"), Message(text: "c")], to: ["alice"])
                    try await mailbox.acknowledge(try await mailbox.look(device: "first").cursor, device: "first")
                    #expect(try await mailbox.look(device: "late").word == (isByAge ? "a b c" : "b c"))
                    #expect(try await mailbox.look(device: "first").word == "timedOut")
                }
            }
        }

        @Test("no message is kept for a device that is forgotten")
        func deadDevice() async throws {
            try await withOffice(configure: { $0.limits.deviceTTL = .seconds(3) }) { office, _, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send("a", to: "alice")
                _ = try await mailbox.look(device: "dead")
                try await until("the dead device is forgotten") {
                    let delivery = try await mailbox.look(device: "living")
                    try await mailbox.acknowledge(delivery.cursor, device: "living")
                    return try await mailbox.count == 0
                }
                #expect(try await mailbox.devices().map(\.name) == ["living"])
            }
        }

        @Test("an unused mailbox expires, one in use does not")
        func ttl() async throws {
            try await withOffice(configure: { $0.limits.ttl = .seconds(1) }) { office, redis, _ in
                try await office.send("a", to: "alice")
                try await until("all of its keys are gone") {
                    _ = try await office.mailbox("bob").look()
                    return try await redis.send("KEYS", "ql:*alice").array?.isEmpty == true
                }
                #expect(try await office.mailbox("bob").inspect() != nil)
            }
        }

        @Test("large messages arrive, and pages are limited by their bytes")
        func large() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                let body = [UInt8](repeating: 7, count: 256 * 1024)
                for _ in 0..<5 { try await office.send(Message(bytes: body), to: "alice") }
                let page = try await mailbox.listen(maxBytes: 768 * 1024, timeout: .zero)
                #expect(page.messages.count == 2)
                #expect(page.messages.allSatisfy { $0.body == body })
                #expect(try await mailbox.listen(maxBytes: 1, timeout: .zero).messages.count == 1)
            }
        }

        @Test("100,000 messages are delivered in pages, completely and in order")
        func pages() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                for start in stride(from: 0, to: 100_000, by: 500) {
                    try await office.send((start..<start + 500).map { Message(text: "\($0)") }, to: ["alice"])
                }
                var cursor: Cursor?
                var next = 0
                while next < 100_000 {
                    let delivery = try await mailbox.look(after: cursor, limit: 10_000)
                    let texts = delivery.messages.map(\.text)
                    #expect(texts == (next..<next + texts.count).map { "\($0)" })
                    next += texts.count
                    try #require(!texts.isEmpty)
                    cursor = delivery.cursor
                }
                #expect(next == 100_000)
            }
        }
    }
}

/// Names that are not the characters that their bytes are after a plus sign: a combining mark, a joiner, a variation
/// selector, a skin tone, a decomposed letter.
private let headerNames = [
    "\u{301}accent", "\u{200D}joined", "\u{FE0F}", "\u{1F3FD}tone", "\u{903}", "o\u{308}", "\u{F6}", "+", "id", "type",
]

struct BadSend: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var body: @Sendable (PostOffice) async throws -> Void
}

private let badSends: [BadSend] = [
    BadSend(testDescription: "no message") { try await $0.send([], to: ["alice"]) },
    BadSend(testDescription: "no recipient") { try await $0.send([Message(text: "a")], to: []) },
    BadSend(testDescription: "an empty name") { try await $0.send("a", to: "") },
    BadSend(testDescription: "a brace") { try await $0.send("a", to: "al{ice") },
    BadSend(testDescription: "a line break") { try await $0.send("a", to: "al\nice") },
    BadSend(testDescription: "a long name") { try await $0.send("a", to: String(repeating: "x", count: 513)) },
    BadSend(testDescription: "too many recipients") {
        try await $0.send([Message(text: "a")], to: (0..<257).map { "\($0)" })
    },
    BadSend(testDescription: "too many messages") {
        try await $0.send(Array(repeating: Message(text: "a"), count: 769), to: ["alice"])
    },
    BadSend(testDescription: "a large body") {
        try await $0.send(Message(bytes: .init(repeating: 0, count: 101)), to: "a")
    },
    BadSend(testDescription: "a type with a line break") {
        try await $0.send(Message(text: "a", type: "x\ny"), to: "alice")
    },
    BadSend(testDescription: "a header with a line break") {
        try await $0.send(Message(text: "a", headers: ["a": "\n"]), to: "alice")
    },
    BadSend(testDescription: "a header with an equals sign") {
        try await $0.send(Message(text: "a", headers: ["a=": ""]), to: "alice")
    },
    BadSend(testDescription: "a header with an equals sign under an accent") {
        try await $0.send(Message(text: "a", headers: ["a=\u{301}": ""]), to: "alice")
    },
    BadSend(testDescription: "no time to live") { try await $0.send(Message(text: "a", ttl: .zero), to: "alice") },
    BadSend(testDescription: "an empty collapse key") {
        try await $0.send(Message(text: "a", collapseKey: ""), to: "alice")
    },
    BadSend(testDescription: "an empty id") { try await $0.send("a", to: "alice", id: "") },
    BadSend(testDescription: "no replicas") { try await $0.send("a", to: "alice", durability: .replicated(0)) },
    BadSend(testDescription: "an empty device") { _ = try await $0.mailbox("alice").listen(device: "") },
    BadSend(testDescription: "no limit") { _ = try await $0.mailbox("alice").listen(limit: 0) },
    BadSend(testDescription: "a negative timeout") { _ = try await $0.mailbox("alice").listen(timeout: .seconds(-1)) },
]
