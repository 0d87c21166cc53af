import Foundation
import Hiredis
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("While the slot of a partition is being moved", .serialized)
    struct MovingSlotTests {
        @Test("scripts use no key that they have deleted, and each mailbox has its newest messages")
        func mix() async throws {
            let seed = testSeed()
            var generator = SplitMix(seed: seed)
            try await withServer { _, redis, _ in
                let moving = MovingSlotRedis(redis)
                var configuration = PostOfficeConfiguration()
                configuration.limits.ttl = .seconds(3600)
                try await withPostOffice(redis: moving, configuration: configuration) { office in
                    var world = SmallMailboxes(office: office)
                    for _ in 0..<400 { try await world.step(&generator) }
                    try await world.check("seed \(seed)")
                }
                #expect(moving.count > 300)
            }
        }

        @Test("a send that makes room before it appends would break the rule")
        func order() async throws {
            // In the branch for boxes that must make room.
            let first = "call('HDEL', box.box, '')"
            let deleting = "call('LTRIM', box.mail, string.format('%d', 2 * box.drop), '-1')"
            try #require(ForeignNode.source("send").contains(first))
            let violations = Locked(0)
            try await withServer { _, redis, _ in
                let moving = MovingSlotRedis(
                    redis, alter: { $0.replacingOccurrences(of: first, with: deleting) },
                    onViolation: { _ in violations.withLock { $0 += 1 } })
                try await withPostOffice(redis: moving) { office in
                    await SmallMailboxes(office: office).attempt(400)
                }
            }
            #expect(violations.withLock { $0 } > 0)
        }

        @Test("the rule refuses a script that uses a list again after it has taken the last element, and no other one")
        func rule() async throws {
            let script = RedisScript("redis.call('LPOP', KEYS[1]) return redis.call('RPUSH', KEYS[1], 'new')")
            try await withServer { _, redis, _ in
                let violations = Locked(0)
                let moving = MovingSlotRedis(redis, onViolation: { _ in violations.withLock { $0 += 1 } })
                for (elements, expected) in [(0, 0), (2, 0), (1, 1)] {
                    _ = try await redis.send("DEL", "list")
                    for _ in 0..<elements { _ = try await redis.send("RPUSH", "list", "old") }
                    _ = try? await moving.script(script, keys: ["list"], arguments: [])
                    #expect(violations.withLock { $0 } == expected)
                }
            }
        }
    }
}

/// Mailboxes that hold so little that they are often emptied and often full, and what they should contain.
private struct SmallMailboxes {
    let office: PostOffice
    private let names = ["a", "b", "c"]
    private var contents: [String: [Stored]] = [:]
    private var cursors: [String: Cursor] = [:]
    private var limits: [String: Int] = [:]
    private var count = 0

    private struct Stored: Equatable {
        var text: String
        var key: String?
    }

    init(office: PostOffice) { self.office = office }

    /// Does random operations, some of which may fail.
    consuming func attempt(_ count: Int) async {
        var generator = SplitMix(seed: 1)
        for _ in 0..<count { try? await step(&generator) }
    }

    mutating func step(_ generator: inout SplitMix) async throws {
        count += 1
        let name = names.randomElement(using: &generator)!
        let mailbox = try office.mailbox(name)
        switch Int.random(in: 0..<10, using: &generator) {
        case 0:
            var new = MailboxLimits()
            new.maxMessages = Int.random(in: 1...4, using: &generator)
            new.whenFull = .dropOldest
            new.ttl = Bool.random(using: &generator) ? .seconds(60) : nil
            try await mailbox.setLimits(new)
            limits[name] = new.maxMessages
        case 1:
            try await mailbox.delete()
            (contents[name], cursors[name], limits[name]) = ([], nil, nil)
        case 2, 3, 4:
            // The next listen acknowledges what this one has received.
            let delivery = try await mailbox.listen(after: nil, timeout: .zero)
            if case .messages = delivery.status {
                let next = try await mailbox.listen(after: delivery.cursor, timeout: .zero)
                #expect(next.word == "timedOut")
                contents[name] = []
            }
        default:
            let messages = (0..<Int.random(in: 1...2, using: &generator)).map {
                Stored(text: "\(count).\($0)", key: ["k", "l", nil].randomElement(using: &generator)!)
            }
            // Those that would not even fit into an empty mailbox are refused.
            let recipients = names.filter { limits[$0].map { messages.count <= $0 } ?? true }.prefix(2)
            if recipients.isEmpty { return }
            try await office.send(
                messages.map { Message(text: $0.text, collapseKey: $0.key) }, to: Array(recipients))
            for name in recipients { store(messages, in: name) }
        }
    }

    private mutating func store(_ messages: [Stored], in name: String) {
        var all = contents[name, default: []]
        // The place of a replaced message remains until there must be room: then it goes with those before it.
        for message in messages {
            if let key = message.key, let index = all.firstIndex(where: { $0.key == key }) { all.remove(at: index) }
            all.append(message)
        }
        contents[name] = all
    }

    func check(_ comment: Comment) async throws {
        for name in names {
            let texts = try await office.mailbox(name).peek().map(\.text)
            let expected = contents[name, default: []].map(\.text)
            // A full mailbox has the newest ones.
            #expect(texts == Array(expected.suffix(texts.count)), comment)
            #expect(texts.isEmpty == expected.isEmpty, comment)
        }
    }
}
