// Data that Redis loses, and the notification of readers.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests.FailureTests {
    @Test("with an append-only file a killed server loses nothing, and listening continues")
    func restartWithData() async throws {
        try await withOffice(.init(persistence: .appendOnly(fsync: .always))) { office, _, server in
            let reading = Task { try await take(30, from: try office.mailbox("alice")) }
            for round in 0..<3 {
                for number in 0..<10 { try await office.send("\(round * 10 + number)", to: "alice") }
                await server.kill()
                try await server.restart()
            }
            #expect(try await reading.value == (0..<30).map { "\($0)" })
        }
    }

    @Test("a server that restarts empty resets its readers, if nothing is sent again")
    func restartWithoutData() async throws {
        try await withOffice(configure: { $0.repairTime = .zero }) { office, _, server in
            try await office.send("a", to: "alice")
            let cursor = try await office.mailbox("alice").look().cursor
            let waiting = Task { try await office.mailbox("alice").listen(after: cursor) }
            try await office.untilWaiting(1, at: "alice")
            await server.kill()
            try await server.restart()
            let delivery = try await waiting.value
            #expect(delivery.word == "reset")
            try await office.send("b", to: "alice")
            #expect(try await office.mailbox("alice").look(after: delivery.cursor).word == "b")
        }
    }

    @Test("a waiting listener is reset by the first message after FLUSHALL, if nothing is sent again")
    func flushAll() async throws {
        try await withOffice(configure: {
            $0.recheckInterval = .seconds(3600)
            $0.repairTime = .zero
        }) { office, redis, _ in
            try await office.send("a", to: "alice")
            let cursor = try await office.mailbox("alice").look().cursor
            let waiting = Task { try await office.mailbox("alice").listen(after: cursor) }
            try await office.untilWaiting(1, at: "alice")
            _ = try await redis.send("FLUSHALL")
            try await office.send("b", to: "alice")
            let delivery = try await waiting.value
            #expect(delivery.word == "reset")
            #expect(try await office.mailbox("alice").look(after: delivery.cursor).word == "b")
        }
    }

    @Test("if only the hash is lost, the messages stay and the reader is notified")
    func lostHash() async throws {
        try await withOffice { office, redis, _ in
            let mailbox = try office.mailbox("alice")
            try await office.send([Message(text: "a"), Message(text: "b"), Message(text: "c")], to: ["alice"])
            let page = try await mailbox.look(limit: 1)
            _ = try await redis.send("DEL", "ql:{default:0}:box:alice")
            try await office.send("d", to: "alice")
            let delivery = try await mailbox.look(after: page.cursor)
            #expect(delivery.word == "reset")
            let rest = try await mailbox.look(after: delivery.cursor)
            #expect(rest.messages.map(\.text) == ["a", "b", "c", "d"])
            #expect(rest.messages.map(\.index) == [1, 2, 3, 4])
        }
    }

    @Test("if only the list is lost, a reader that has not read it is notified, and one that has is not")
    func lostList() async throws {
        try await withOffice { office, redis, _ in
            let mailbox = try office.mailbox("alice")
            try await office.send([Message(text: "a"), Message(text: "b")], to: ["alice"])
            let first = try await mailbox.look(device: "behind", limit: 1)
            let last = try await mailbox.look(device: "ahead")
            _ = try await redis.send("DEL", "ql:{default:0}:mail:alice")
            #expect(try await mailbox.look(after: last.cursor, device: "ahead").word == "timedOut")
            try await office.send("c", to: "alice")
            #expect(try await mailbox.look(after: last.cursor, device: "ahead").word == "c")
            let notified = try await mailbox.look(after: first.cursor, device: "behind")
            #expect(notified.word == "truncated 3")
            #expect(try await mailbox.look(after: notified.cursor, device: "behind").word == "c")
        }
    }

    @Test("a reader detects that a failover has lost the end that it has read, also if other messages are in its place")
    func fork() async throws {
        for rewritten in 0...3 {
            try await withOffice { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send("a", to: "alice")
                try await save(redis)
                try await office.send([Message(text: "b"), Message(text: "c")], to: ["alice"])
                let cursor = try await mailbox.look().cursor
                try await restore(redis)
                // Another sender knows nothing of the loss.
                let stranger = try PostOffice(redis: redis)
                for number in 0..<rewritten { try await stranger.send("new \(number)", to: "alice") }
                // Another process, which has the cursor, does not know what was before it.
                let other = try stranger.mailbox("alice")
                let delivery = try await other.look(after: cursor)
                #expect(delivery.word == "forked", "with \(rewritten) written")
                let rest = try await other.look(after: delivery.cursor)
                #expect(rest.messages.map(\.text) == ["a"] + (0..<rewritten).map { "new \($0)" })
                // The process that has received it has missed nothing.
                let continued = try await mailbox.look(after: cursor)
                #expect(!continued.status.isLoss && continued.skipped == 1, "\(continued)")
                #expect(continued.messages.map(\.text) == (0..<rewritten).map { "new \($0)" })
            }
        }
    }

    @Test("messages that a failover has lost unread are reported when their sender sends again")
    func lostUnread() async throws {
        for rewritten in 0...3 {
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis) { sender in
                    try await withPostOffice(redis: other) { stranger in
                        let mailbox = try stranger.mailbox("alice")
                        try await sender.send("a", to: "alice")
                        let cursor = try await mailbox.look().cursor
                        try await save(redis)
                        try await sender.send(
                            [Message(text: "lost"), Message(text: "lost too")], to: ["alice", "bob"])
                        try await restore(redis)
                        for number in 0..<rewritten { try await stranger.send("new \(number)", to: "alice") }
                        // The loss cannot be known yet.
                        #expect(try await mailbox.look(after: cursor).status.isLoss == false)
                        try await sender.send("b", to: "alice", "bob")
                        let delivery = try await mailbox.look(after: cursor)
                        #expect(delivery.word == "reset", "with \(rewritten) written")
                        let rest = try await mailbox.look(after: delivery.cursor).messages.map(\.text)
                        #expect(rest == (0..<rewritten).map { "new \($0)" } + ["b"])
                        // Only once: the next send finds the messages that it knows.
                        try await sender.send("c", to: "alice", "bob")
                        #expect(try await mailbox.look(after: delivery.cursor).messages.last?.text == "c")
                    }
                }
            }
        }
    }

    @Test(
        "a process that begins without a cursor is notified of a loss, until its device has acknowledged a later position"
    )
    func unawareDevice() async throws {
        try await withOffice { office, redis, _ in
            let mailbox = try office.mailbox("alice")
            try await office.send([Message(text: "a"), Message(text: "b")], to: ["alice"])
            let first = try await mailbox.look(device: "phone", limit: 1)
            // Acknowledges a.
            _ = try await mailbox.look(after: first.cursor, device: "phone")
            _ = try await mailbox.look(device: "tablet")
            try await save(redis)
            try await office.send("lost", to: "alice")
            try await restore(redis)
            try await office.send("c", to: "alice")
            // Each process is new, and any of them may have been killed before it received the reply.
            var delivery = try await mailbox.look(device: "phone")
            for _ in 0..<3 {
                #expect(delivery.word == "reset")
                delivery = try await PostOffice(redis: redis).mailbox("alice").look(device: "phone")
            }
            let devices = try #require(try await mailbox.inspect()).devices
            #expect(devices.map(\.acknowledged.index) == [0, 0], "\(devices)")
            let rest = try await mailbox.look(after: delivery.cursor, device: "phone")
            #expect(rest.word == "b c")
            #expect(try await mailbox.look(device: "phone").word == "b c", "the first position counts as acknowledged")
            _ = try await mailbox.look(after: rest.cursor, device: "phone")
            #expect(try await mailbox.look(device: "phone").word == "timedOut")
            // A new device has missed nothing. The tablet is still unaware, and nothing was deleted meanwhile.
            #expect(try await mailbox.look(device: "new").word == "b c")
            let notified = try await mailbox.look(device: "tablet")
            #expect(notified.word == "reset")
            #expect(try await mailbox.look(after: notified.cursor, device: "tablet").word == "b c")
        }
    }

    @Test(
        "a process that begins without a cursor is notified of the loss that another one of its device was notified of")
    func unawareSuccessor() async throws {
        try await withOffice { office, redis, _ in
            try await office.send("a", to: "alice")
            try await save(redis)
            try await office.send("lost", to: "alice")
            let cursor = try await office.mailbox("alice").look().cursor
            try await restore(redis)
            // Another process, which has not received what is lost.
            let mailbox = try PostOffice(redis: redis).mailbox("alice")
            // The acknowledgement alone is invalid, and notifies nobody.
            #expect(try await !mailbox.acknowledge(cursor))
            #expect(try await mailbox.look().word == "a")
            #expect(try await mailbox.look(after: cursor).word == "forked")
            let delivery = try await mailbox.look()
            #expect(delivery.word == "reset")
            #expect(try await mailbox.look(after: delivery.cursor).word == "a")
        }
    }

    @Test(
        "a process that begins without a cursor is notified of messages that were dropped after its device's position")
    func truncatedDevice() async throws {
        try await withOffice(configure: {
            $0.limits.maxMessages = 2
            $0.limits.whenFull = .dropOldest
        }) { office, _, _ in
            let mailbox = try office.mailbox("alice")
            try await office.send("a", to: "alice")
            _ = try await mailbox.look(after: try await mailbox.look().cursor)
            for text in ["b", "c", "d"] { try await office.send(text, to: "alice") }
            var delivery = try await mailbox.look()
            #expect(delivery.word == "truncated 3")
            delivery = try await mailbox.look()
            #expect(delivery.word == "truncated 3", "the reply may have been lost")
            delivery = try await mailbox.look(after: delivery.cursor)
            #expect(delivery.word == "c d")
            #expect(try await mailbox.look().word == "c d")
            #expect(try await mailbox.look(device: "new").word == "c d")
        }
    }

    @Test("a lost message is reported when its sender sends again, also if another one in its place was acknowledged")
    func lostAndReplaced() async throws {
        try await withServer { _, redis, other in
            let (sender, stranger) = (try PostOffice(redis: redis), try PostOffice(redis: other))
            let mailbox = try stranger.mailbox("alice")
            try await sender.send("a", to: "alice")
            var cursor = try await mailbox.look().cursor
            try await save(redis)
            try await sender.send("lost", to: "alice")
            try await restore(redis)
            try await stranger.send("in its place", to: "alice")
            let delivery = try await mailbox.look(after: cursor)
            #expect(delivery.word == "in its place")
            cursor = delivery.cursor
            // Acknowledges it.
            #expect(try await mailbox.look(after: cursor).word == "timedOut")
            try await sender.send("b", to: "alice")
            let notified = try await mailbox.look(after: cursor)
            #expect(notified.word == "reset")
            #expect(try await mailbox.look(after: notified.cursor).word == "b")
        }
    }

    @Test(
        "a lost message is reported if up to 32 others have been acknowledged since, in its place and after it",
        arguments: [2, 20, 32, 33], [true, false])
    func lostLongAgo(others: Int, atOnce: Bool) async throws {
        try await withServer { _, redis, other in
            let (sender, stranger) = (try PostOffice(redis: redis), try PostOffice(redis: other))
            let mailbox = try stranger.mailbox("alice")
            try await sender.send("a", to: "alice")
            var cursor = try await mailbox.look().cursor
            try await save(redis)
            try await sender.send("lost", to: "alice")
            try await restore(redis)
            for number in 0..<others {
                try await stranger.send("\(number)", to: "alice")
                if !atOnce { cursor = try await mailbox.look(after: cursor).cursor }
            }
            if atOnce { cursor = try await mailbox.look(after: cursor).cursor }
            // Acknowledges the last one.
            #expect(try await mailbox.look(after: cursor).word == "timedOut")
            #expect(try await mailbox.inspect()?.count == 0)
            try await sender.send("b", to: "alice")
            let delivery = try await mailbox.look(after: cursor)
            guard others <= 32 else {
                #expect(delivery.word == "b", "the limit in docs/failure-model.md")
                return
            }
            #expect(delivery.word == "reset")
            #expect(try await mailbox.look(after: delivery.cursor).word == "b")
            // Only once.
            try await sender.send("c", to: "alice")
            #expect(try await mailbox.look(after: delivery.cursor).word == "b c")
        }
    }

    @Test("no loss is reported to a sender whose last message was acknowledged, or dropped, together with many others")
    func noLoss() async throws {
        try await withServer { _, redis, other in
            var configuration = PostOfficeConfiguration()
            configuration.limits.maxMessages = 100
            configuration.limits.whenFull = .dropOldest
            let sender = try PostOffice(redis: redis, configuration: configuration)
            let stranger = try PostOffice(redis: other, configuration: configuration)
            let mailbox = try stranger.mailbox("alice")
            var cursor: Cursor?
            for count in [0, 1, 2, 31, 32, 33, 99, 150] {
                try await sender.send("mine", to: "alice")
                for number in 0..<count { try await stranger.send("\(number)", to: "alice") }
                var delivery = try await mailbox.look(after: cursor)
                #expect(delivery.word.hasPrefix("truncated") == (count > 99), "\(count): \(delivery.word)")
                if count > 99 { delivery = try await mailbox.look(after: delivery.cursor) }
                cursor = delivery.cursor
                #expect(try await mailbox.look(after: cursor).word == "timedOut")
            }
            try await sender.send("mine", to: "alice")
            #expect(try await mailbox.look(after: cursor).word == "mine")
        }
    }
}

/// Keeps a copy of the mailbox `alice`.
private func save(_ redis: RedisClient) async throws {
    for kind in ["box", "mail"] {
        _ = try await redis.send("COPY", .string("ql:{default:0}:\(kind):alice"), .string("before-\(kind)"))
    }
}

/// Puts the copy in the mailbox's place, as if a failover had lost all later writes.
private func restore(_ redis: RedisClient) async throws {
    for kind in ["box", "mail"] {
        _ = try await redis.send("RENAME", .string("before-\(kind)"), .string("ql:{default:0}:\(kind):alice"))
    }
}
