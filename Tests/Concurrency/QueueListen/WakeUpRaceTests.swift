// Races with wake-ups, and messages at the limits of what a wake-up contains.
import Hiredis
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests {
    @Suite("Wake-up races", .serialized)
    struct WakeUpRaceTests {
        @Test("bodies of every size around the limit of a wake-up arrive unchanged, and only small ones are in it")
        func sizes() async throws {
            // Periodic checks are scripts, too.
            try await withOffice(configure: { $0.recheckInterval = .seconds(3600) }) { office, redis, _ in
                let mailbox = try office.mailbox(String(repeating: "é", count: 256))
                try await office.send("first", to: mailbox.name)
                var cursor = try await mailbox.look().cursor
                var arrivedInWakeUp: [Bool] = []
                for size in [0, 1, 255, 256] + Array(900...1030) + [65_535, 65_536, 65_537, 1 << 20] {
                    let body = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
                    let waiting = Task { [cursor] in try await mailbox.listen(after: cursor) }
                    try await office.untilWaiting(1, at: mailbox.name)
                    let before = try await mailScriptCalls(redis)
                    try await office.send([Message(bytes: body)], to: [mailbox.name])
                    let delivery = try await waiting.value
                    #expect(delivery.messages.map(\.body) == [body])
                    #expect(delivery.cursor.index == cursor.index + 1 && delivery.skipped == 0)
                    arrivedInWakeUp.append(try await mailScriptCalls(redis) - before == 1)
                    cursor = delivery.cursor
                }
                let first = try #require(arrivedInWakeUp.firstIndex(of: false))
                #expect(first > 4 && arrivedInWakeUp[first...].allSatisfy { !$0 })
                #expect(arrivedInWakeUp[..<first].allSatisfy { $0 })
            }
        }

        @Test("wake-ups of one send contain at most 64 KiB, and the other recipients read their messages")
        func bound() async throws {
            try await withOffice(configure: { $0.recheckInterval = .seconds(3600) }) { office, redis, _ in
                let names = (0..<256).map { "user-\($0)" }
                try await office.send("first", to: "nobody")
                let waiting = names.map { name in Task { try await office.mailbox(name).listen() } }
                try await office.untilWaiting(256, at: names[0])
                let before = try await mailScriptCalls(redis)
                let body = [UInt8](repeating: 0, count: 900)
                try await office.send([Message(bytes: body)], to: names)
                for task in waiting { #expect(try await task.value.messages.map(\.body) == [body]) }
                let count = try await mailScriptCalls(redis) - before
                #expect(count > 150 && count < 256 - 50)
            }
        }

        @Test("names with equal characters and different bytes are two mailboxes and two devices")
        func lookalikes() async throws {
            try await withOffice { office, _, _ in
                let names = ["caf\u{E9}", "cafe\u{301}"]
                let first = Task { try await office.mailbox(names[0]).listen() }
                try await office.untilWaiting(1, at: names[0])
                // An answer that is late is an error.
                try await until("the other mailbox is empty") {
                    (try? await office.mailbox(names[1]).listen(timeout: .milliseconds(10)))?.word == "timedOut"
                }
                try await office.send("a", to: names[0])
                #expect(try await first.value.word == "a")
                let second = Task { try await office.mailbox("alice").listen(device: names[0]) }
                try await office.untilWaiting(1, at: "alice")
                let mailbox = try office.mailbox("alice")
                try await until("the other device has read everything") {
                    (try? await mailbox.listen(device: names[1], timeout: .milliseconds(10)))?.word == "timedOut"
                }
                try await office.send("b", to: "alice")
                #expect(try await second.value.word == "b")
            }
        }

        @Test("the messages of an unused mailbox expire with it, also those that were sent while it was empty")
        func abandoned() async throws {
            try await withOffice { office, redis, _ in
                for name in ["listened", "read"] {
                    let mailbox = try office.mailbox(name)
                    if name == "read" { try await office.send("a", to: name) }
                    let delivery = try await mailbox.look()
                    if name == "read" { #expect(try await mailbox.acknowledge(delivery.cursor)) }
                    try await office.send("b", to: name)
                    let keys = mailbox.partition.keys
                    let times = try await redis.transaction([
                        ["PTTL", .string(keys.box(name))], ["PTTL", .string(keys.mail(name))],
                    ])
                    let (box, mail) = (times[0].integer ?? -1, times[1].integer ?? -1)
                    #expect(box > 0 && abs(box - mail) < 1000, "\(name): \(box) and \(mail) ms")
                }
            }
        }

        @Test("a mailbox without a time to live is kept from the next send or listen on")
        func kept() async throws {
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis) { office in
                    for name in ["alice", "bob"] { try await office.send("a", to: name) }
                }
                var configuration = PostOfficeConfiguration()
                configuration.limits.ttl = nil
                try await withPostOffice(redis: redis, configuration: configuration) { office in
                    try await office.send("b", to: "alice")
                    _ = try await office.mailbox("bob").look()
                    for name in ["alice", "bob"] {
                        for key in try office.mailbox(name).partition.keys.scriptKeys(name).dropFirst() {
                            #expect(try await other.send("PTTL", .string(key)).integer == -1)
                        }
                    }
                }
            }
        }

        @Test("the longest times to live do not expire immediately")
        func longLife() async throws {
            try await withOffice { office, _, _ in
                let seconds: [Int64] = [1 << 36, 280_474_976_711, 281_474_976_711, 1 << 40, .max]
                for seconds in seconds {
                    try await office.send(Message(text: "a", ttl: .seconds(seconds)), to: "alice")
                }
                #expect(try await office.mailbox("alice").look().messages.count == 5)
            }
        }

        @Test("a message does not replace itself after the list has lost elements")
        func replacedByItself() async throws {
            for lost in 1...2 {
                try await withOffice { office, redis, _ in
                    let mailbox = try office.mailbox("alice")
                    try await office.send(
                        [Message(text: "a"), Message(text: "b"), Message(text: "c", collapseKey: "k")], to: ["alice"])
                    _ = try await redis.send("RPOP", .string(mailbox.partition.keys.mail("alice")), .integer(2 * lost))
                    try await office.send(Message(text: "new", collapseKey: "k"), to: "alice")
                    #expect(try await mailbox.look().word == (lost == 1 ? "a b new" : "a new"))
                }
            }
        }

        @Test("a value of the wrong type under a collapse key does not interrupt a send")
        func foreignKey() async throws {
            try await withOffice { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send("a", to: "alice")
                _ = try await redis.send("HSET", .string(mailbox.partition.keys.box("alice")), "k:k", "mine")
                try await office.send(Message(text: "b", collapseKey: "k"), to: "alice")
                #expect(try await mailbox.look().word == "a b")
            }
        }

        @Test("a mailbox that is created again by setLimits notifies the listeners of the lost one")
        func limits() async throws {
            // Periodic checks find nothing.
            try await withOffice(configure: { $0.recheckInterval = .seconds(3600) }) { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                let waiting = Task { try await mailbox.listen() }
                try await office.untilWaiting(1, at: "alice")
                _ = try await redis.send("FLUSHALL")
                try await mailbox.setLimits(MailboxLimits())
                try await office.send("a", to: "alice")
                #expect(try await waiting.value.word == "reset")
            }
        }

        @Test("a call that is superseded while it receives no wake-ups is ended, whatever wake-up arrives next")
        func supersededUnheard() async throws {
            try await withServer { _, redis, other in
                let gate = AsyncStream<Void>.makeStream()
                let held = AsyncStream<Void>.makeStream()
                let slow = InterposedRedis(
                    redis,
                    beforePost: { script in
                        guard script.source == Scripts.check.source else { return }
                        held.continuation.yield()
                        for await _ in gate.stream {}
                    })
                try await withPostOffice(redis: slow) { old in
                    try await withPostOffice(redis: other) { new in
                        let first = Task { try await old.mailbox("alice").listen(timeout: .seconds(60)) }
                        try await old.untilWaiting(1, at: "alice")
                        let line = try await other.send("CLIENT", "LIST", "TYPE", "pubsub").string ?? ""
                        let id = try #require(line.split { $0 == "=" || $0 == " " }.dropFirst().first)
                        try await until("the other process has subscribed") {
                            _ = try? await new.mailbox("bob").listen(timeout: .milliseconds(1))
                            let lines = try await other.send("CLIENT", "LIST", "TYPE", "pubsub").string ?? ""
                            return lines.split(separator: "\n").count == 2
                        }
                        // It receives no wake-up of its successor, and the check after the gap is delayed.
                        _ = try await other.send("CONFIG", "SET", "maxclients", "1")
                        _ = try await other.send("CLIENT", "KILL", "ID", .string(String(id)))
                        let second = Task { try await new.mailbox("alice").listen(timeout: .seconds(60)) }
                        try await new.untilWaiting(1, at: "alice")
                        _ = try await other.send("CONFIG", "SET", "maxclients", "1000")
                        for await _ in held.stream { break }
                        try await new.send("a", to: "alice")
                        try await until("the message is there") { try await new.mailbox("alice").count == 1 }
                        gate.continuation.finish()
                        #expect(try await first.value.word == "superseded")
                        #expect(try await second.value.word == "a")
                    }
                }
            }
        }

        /// Reads with random cancellations, timeouts and page sizes, and checks what it receives.
        private static func take(
            upTo end: Int, _ mailbox: Mailbox, device: String, seed: UInt64, loses: Bool = false
        ) async throws -> [String] {
            var generator = SplitMix(seed: seed)
            let first = try await mailbox.look(device: device, limit: 1)
            var cursor = first.cursor
            var texts = first.messages.map(\.text)
            while cursor.index < end {
                if Bool.random(using: &generator) {
                    _ = try await mailbox.acknowledge(cursor, device: device)
                }
                let limit = Int.random(in: 1...20, using: &generator)
                let maxBytes =
                    Bool.random(using: &generator) ? 1 << 20 : Int.random(in: 1...2000, using: &generator)
                let timeout = Duration.milliseconds([1, 5, 50, 5000].randomElement(using: &generator)!)
                let waiting = Task { [cursor] in
                    try await mailbox.listen(
                        after: cursor, device: device, limit: limit, maxBytes: maxBytes, timeout: timeout)
                }
                if Int.random(in: 0..<4, using: &generator) == 0 {
                    for _ in 0..<Int.random(in: 0..<20, using: &generator) { await Task.yield() }
                    waiting.cancel()
                }
                let delivery: Delivery
                do { delivery = try await waiting.value } catch let error as QueueListenError {
                    // Beside other tests, an answer may come later than a second after the call's timeout.
                    let isLate = "\(error)".contains("did not answer before the timeout")
                    #expect(error.code == .cancelled || isLate, "\(error)")
                    continue
                }
                switch delivery.status {
                case .messages(let messages):
                    #expect(delivery.cursor.index == cursor.index + messages.count + delivery.skipped)
                    #expect(messages.count + delivery.skipped <= limit)
                    for (message, next) in zip(messages, messages.dropFirst()) { #expect(message.index < next.index) }
                    if let first = messages.first { #expect(first.index > cursor.index) }
                    texts += messages.map(\.text)
                case .timedOut: #expect(delivery.cursor == cursor)
                case .truncated(let first):
                    #expect(loses && first > cursor.index + 1)
                default: Issue.record("\(delivery.status)")
                }
                cursor = delivery.cursor
            }
            return texts
        }

        @Test("with random senders and readers, each device gets every message once and in order", arguments: [1, 3])
        func atRandom(partitions: Int) async throws {
            var configuration = PostOfficeConfiguration()
            configuration.partitions = partitions
            configuration.callTimeout = patience
            configuration.recheckInterval = .seconds(1)
            let settings = configuration
            let seed = testSeed()
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis, configuration: settings) { near in
                    try await withPostOffice(redis: other, configuration: settings) { far in
                        let names = ["alice", "bob", "carol"]
                        let devices = ["phone", "laptop", "watch"]
                        for name in names {
                            for device in devices { _ = try await near.mailbox(name).look(device: device) }
                        }
                        let readers = names.flatMap { name in
                            devices.enumerated().map { number, device in
                                Task {
                                    try await Self.take(
                                        upTo: 1200, try (number == 0 ? far : near).mailbox(name), device: device,
                                        seed: seed + UInt64(number))
                                }
                            }
                        }
                        await withThrowingTaskGroup(of: Void.self) { group in
                            for sender in 0..<4 {
                                group.addTask {
                                    var generator = SplitMix(seed: seed * 7 + UInt64(sender))
                                    let office = sender % 2 == 0 ? near : far
                                    var next = 0
                                    while next < 300 {
                                        let count = min(300 - next, Int.random(in: 1...6, using: &generator))
                                        let size = Int.random(in: 0...300, using: &generator)
                                        let pad = String(repeating: "x", count: size)
                                        let messages = (next..<next + count).map {
                                            Message(text: "\(sender) \($0) \(pad)")
                                        }
                                        try await office.send(messages, to: names)
                                        next += count
                                    }
                                }
                            }
                        }
                        for reader in readers {
                            var last = [-1, -1, -1, -1]
                            for text in try await reader.value {
                                let words = text.split(separator: " ").prefix(2).compactMap { Int($0) }
                                try #require(words.count == 2)
                                #expect(words[1] == last[words[0]] + 1, "seed \(seed)")
                                last[words[0]] = words[1]
                            }
                            #expect(last == [299, 299, 299, 299], "seed \(seed)")
                        }
                    }
                }
            }
        }

        @Test("with small limits, collapse keys and short lives, every message is delivered, counted or reported")
        func lossesAtRandom() async throws {
            let seed = testSeed()
            try await withOffice(configure: {
                $0.limits.maxMessages = 8
                $0.limits.whenFull = .dropOldest
            }) { office, _, _ in
                let mailbox = try office.mailbox("alice")
                for device in ["phone", "laptop"] { _ = try await mailbox.look(device: device) }
                let readers = ["phone", "laptop"].enumerated().map { number, device in
                    Task {
                        try await Self.take(
                            upTo: 1000, mailbox, device: device, seed: seed + UInt64(number), loses: true)
                    }
                }
                var generator = SplitMix(seed: seed)
                var next = 0
                while next < 1000 {
                    let count = min(1000 - next, Int.random(in: 1...3, using: &generator))
                    let messages = (next..<next + count).map { number in
                        Message(
                            text: "\(number)", ttl: Bool.random(using: &generator) ? .milliseconds(1) : nil,
                            collapseKey: ["a", "b", nil, nil].randomElement(using: &generator)!)
                    }
                    try await office.send(messages, to: ["alice"])
                    next += count
                }
                for reader in readers {
                    let numbers = try await reader.value.compactMap { Int($0) }
                    for (number, next) in zip(numbers, numbers.dropFirst()) { #expect(number < next, "seed \(seed)") }
                }
            }
        }
    }
}
