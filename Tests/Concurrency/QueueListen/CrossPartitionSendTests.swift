import CoordinationBase
import Foundation
import Hiredis
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

/// Eight partitions, and sends are taken over after 100 ms.
private let split: PostOfficeConfiguration = {
    var configuration = PostOfficeConfiguration()
    configuration.callTimeout = patience
    configuration.partitions = 8
    configuration.takeOverAfter = .milliseconds(100)
    return configuration
}()

/// Eight partitions, and no send is taken over.
private let passive: PostOfficeConfiguration = {
    var configuration = split
    configuration.takeOverAfter = .seconds(3600)
    return configuration
}()

private let names = ["alice", "bob", "carol", "dave", "eve"]

private func texts(_ office: PostOffice, _ names: [String]) async throws -> [[String]] {
    var all: [[String]] = []
    for name in names { all.append(try await office.mailbox(name).peek(limit: 1000).map(\.text)) }
    return all
}

/// The number of recorded and unfinished sends.
private func unfinished(_ redis: RedisClient) async throws -> Int {
    var count = 0
    for number in 0..<8 {
        count += try await redis.send("ZCARD", .string("ql:{default:\(number)}:splits")).integer ?? 0
    }
    return count
}

/// A Redis for a sender that dies after a number of steps: it sends nothing more, or receives
/// nothing more.
///
/// - Parameter receivesLast: whether the reply to the last step arrives.
private func mortal(_ redis: RedisClient, after steps: Int, receivesLast: Bool) -> InterposedRedis {
    // Not a Mutex, whose lock ThreadSanitizer does not recognize on Linux.
    let left = Atomic(steps)
    let end = RedisError(.clientStopped, "dead")
    return InterposedRedis(
        redis,
        before: { _ in if left.subtract(1, ordering: .relaxed).newValue < 0 { throw end } },
        after: { _ in if !receivesLast, left.load(ordering: .relaxed) <= 0 { throw end } })
}

extension QueueListenTests {
    @Suite("Cross-partition sends", .serialized)
    struct CrossPartitionSendTests {
        @Test("all recipients get the messages once, however often they are sent under one id")
        func all() async throws {
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis, configuration: passive) { office in
                    let homes = Set(try names.map { try office.mailbox($0).partition.number })
                    try #require(homes.count > 2)
                    try await office.send("before", to: "bob")
                    let first = try await office.send([Message(text: "a"), Message(text: "b")], to: names, id: "x")
                    #expect(first.indices["alice"] == 1...2)
                    #expect(first.indices["bob"] == 2...3)
                    try await office.send("after", to: "alice")
                    let second = try await office.send([Message(text: "a"), Message(text: "b")], to: names, id: "x")
                    #expect(first == second)
                    let conflict = await errorOf { try await office.send([Message(text: "c")], to: names, id: "x") }
                    #expect(conflict?.code == .conflict)
                    let own = try await office.send([
                        "alice": [Message(text: "1")], "bob": [Message(text: "2"), Message(text: "3")],
                    ])
                    #expect(own.indices == ["alice": 4...4, "bob": 4...5])
                    let all = try await texts(office, names)
                    #expect(all[0] == ["a", "b", "after", "1"])
                    #expect(all[1] == ["before", "a", "b", "2", "3"])
                    #expect(all[2...].allSatisfy { $0 == ["a", "b"] })
                    // Ids identify messages as in one partition.
                    let ids = try await office.mailbox("carol").peek().map(\.id)
                    #expect(ids == ["x/0", "x/1"])
                    // Every record expires.
                    #expect(try await unfinished(other) == 0)
                    for pattern in ["ql:*:split:*", "ql:*:sent:*"] {
                        let keys = try await other.send("KEYS", .string(pattern)).array?.compactMap(\.string) ?? []
                        #expect(!keys.isEmpty)
                        for key in keys {
                            let left = try await other.send("PTTL", .string(key)).integer ?? -1
                            // The parts are remembered for longer, until the home has shown again that the send is finished.
                            let day = 86_400_000
                            #expect((1...(pattern.contains("split") ? 600_000 : 30 * day)).contains(left), "\(key)")
                        }
                    }
                }
            }
        }

        @Test("the partitions forget their parts when the home still knows that the send is finished")
        func forgotten() async throws {
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis, configuration: split) { office in
                    try await office.send([Message(text: "a")], to: names, id: "x")
                    try await until("the parts are forgotten soon") {
                        let keys = try await other.send("KEYS", "ql:*:sent:id:x").array?.compactMap(\.string) ?? []
                        var left: [Int] = []
                        for key in keys { left.append(try await other.send("PTTL", .string(key)).integer ?? -1) }
                        return left.allSatisfy { (1...600_000).contains($0) }
                    }
                }
            }
        }

        @Test("the partitions remember their parts as long as the home says that the send is unfinished")
        func remembered() async throws {
            try await withServer { _, redis, other in
                let request = try SendRequest([Message(text: "a")], to: names, maxMessageBytes: 1000)
                let home = Namespace("default", partitions: 8).partition(of: "x")
                let hasAsked = Atomic(false)
                let hasDecided = Atomic(false)
                let observed = InterposedRedis(
                    redis,
                    before: { keys in
                        if keys == ["HEXISTS"], !hasAsked.load(ordering: .relaxed) {
                            // As in a replica that was promoted before the end had arrived. It is not listed, so nobody
                            // takes it over.
                            _ = try await other.send([
                                "HSET", .string("ql:{default:\(home)}:split:x"), "p",
                                .bytes(request.encoded(id: "x").encoded),
                            ])
                            hasAsked.store(true, ordering: .relaxed)
                        }
                        // Taking over follows in each round.
                        if hasAsked.load(ordering: .relaxed), keys.count == 1, keys[0].hasSuffix(":splits") {
                            hasDecided.store(true, ordering: .relaxed)
                        }
                    })
                try await withPostOffice(redis: observed, configuration: split) { office in
                    try await office.send([Message(text: "a")], to: names, id: "x")
                    try await until("the home was asked") { hasDecided.load(ordering: .relaxed) }
                    let parts = try await other.send("KEYS", "ql:*:sent:id:x").array?.compactMap(\.string) ?? []
                    #expect(!parts.isEmpty)
                    for part in parts {
                        #expect(try await other.send("PTTL", .string(part)).integer ?? 0 > 29 * 86_400_000)
                    }
                }
            }
        }

        @Test("a home that has lost the end of a send in a failover does not make it arrive twice")
        func lostFinish() async throws {
            var configuration = split
            configuration.takeOverAfter = .seconds(1)
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis, configuration: configuration) { office in
                    let request = try SendRequest([Message(text: "a")], to: names, maxMessageBytes: 1000)
                    try await office.send([Message(text: "a")], to: names, id: "x")
                    let home = Namespace("default", partitions: 8).partition(of: "x")
                    let record = RedisArgument.string("ql:{default:\(home)}:split:x")
                    // However long the home is away, the parts are remembered until it is back.
                    let parts = try await other.send("KEYS", "ql:*:sent:id:x").array?.compactMap(\.string) ?? []
                    #expect(!parts.isEmpty)
                    for part in parts {
                        #expect(try await other.send("PTTL", .string(part)).integer ?? 0 > 29 * 86_400_000)
                    }
                    _ = try await other.send("DEL", record)
                    // The record of a replica that was promoted before the end had arrived.
                    _ = try await other.send([
                        "HSET", record, "f", .string(request.encoded(id: "x").fingerprint), "p",
                        .bytes(request.encoded(id: "x").encoded),
                    ])
                    _ = try await other.send("ZADD", .string("ql:{default:\(home)}:splits"), 0, "x")
                    try await until("the send is finished again") { try await unfinished(other) == 0 }
                    #expect(try await texts(office, names) == names.map { _ in ["a"] })
                }
            }
        }

        @Test("a send across partitions under a used id that differs in anything is refused", arguments: sendPairs)
        func conflict(_ pair: SendPair) async throws {
            try await withServer { _, redis, _ in
                try await withPostOffice(redis: redis, configuration: passive) { office in
                    try await office.send(pair.first, to: names, id: "x")
                    let error = await errorOf { try await office.send(pair.second, to: names, id: "x") }
                    #expect(error?.code == .conflict)
                    #expect(try await office.mailbox("alice").count == pair.first.count)
                }
            }
        }

        @Test("one full mailbox refuses a send for all recipients, unless the send was recorded before")
        func full() async throws {
            var small = passive
            small.limits.maxMessages = 1
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis, configuration: small) { office in
                    try await office.send("a", to: "carol")
                    let error = await errorOf { try await office.send([Message(text: "b")], to: names) }
                    #expect(error?.code == .mailboxFull)
                    #expect(error?.mayHaveRun == false)
                    #expect(error?.message.contains("carol") == true)
                    #expect(try await texts(office, names) == [[], [], ["a"], [], []])
                    let keys = try await other.send("KEYS", "ql:*:split*").array
                    #expect(keys?.isEmpty == true)

                    // A mailbox becomes full after all partitions have accepted the send.
                    let looks = Locked(true)
                    let filling = InterposedRedis(
                        redis,
                        before: { keys in
                            guard keys.contains(where: { $0.contains(":split:") }),
                                looks.withLock({ isFirst in
                                    defer { isFirst = false }
                                    return isFirst
                                })
                            else { return }
                            try await office.send("full", to: "eve")
                        })
                    let others = names.filter { $0 != "carol" }
                    let sender = try PostOffice(redis: filling, configuration: small)
                    let first = try await sender.send([Message(text: "c")], to: others, id: "y")
                    #expect(try await texts(office, others) == [["c"], ["c"], ["c"], ["full", "c"]])
                    #expect(try await sender.send([Message(text: "c")], to: others, id: "y") == first)

                    // The send is recorded, and the mailboxes become full before the next attempt delivers its parts.
                    let more = names.map { "\($0) 2" }
                    let homes = Set(try more.map { try office.mailbox($0).partition.number })
                    let dead = try PostOffice(
                        redis: mortal(redis, after: homes.count + 1, receivesLast: true), configuration: small)
                    let death = await errorOf { try await dead.send([Message(text: "d")], to: more, id: "z") }
                    #expect(death?.code == .unfinished)
                    for name in more { try await office.send("full", to: name) }
                    let late = try await office.send([Message(text: "d")], to: more, id: "z")
                    #expect(late.indices.values.allSatisfy { $0 == 2...2 })
                }
            }
        }

        @Test("at maxmemory a cross-partition send reaches no recipient")
        func outOfMemory() async throws {
            try await withServer { _, redis, other in
                try await withPostOffice(redis: redis, configuration: passive) { office in
                    _ = try await other.send("CONFIG", "SET", "maxmemory", "1")
                    let error = await errorOf { try await office.send([Message(text: "b")], to: names) }
                    #expect(error?.code == .outOfMemory)
                    #expect(error?.mayHaveRun == false)
                    #expect(try await other.send("DBSIZE").integer == 0)
                }
            }
        }

        @Test(
            "when a sender dies at any step, its send reaches all recipients or none, and others finish it",
            arguments: [true, false])
        func deaths(receivesLast: Bool) async throws {
            try await withServer { _, redis, other in
                try await withPostOffice(redis: other, configuration: split) { survivor in
                    var (steps, hasEnded, begun) = (0, false, 0)
                    while !hasEnded {
                        let recipients = names.map { "\($0) \(steps)" }
                        let sender = try PostOffice(
                            redis: mortal(redis, after: steps, receivesLast: receivesLast), configuration: passive)
                        let error = await errorOf {
                            try await sender.send([Message(text: "a")], to: recipients, id: "s\(steps)")
                        }
                        // Another process executes the remaining steps.
                        try await until("the send is finished") { try await unfinished(other) == 0 }
                        let all = try await texts(survivor, recipients)
                        #expect(Set(all).count == 1, "after \(steps): \(all)")
                        if all[0] == ["a"] { begun += 1 } else { #expect(error != nil) }
                        // Another attempt under the id is answered, and no recipient gets the message twice.
                        let receipt = try await survivor.send([Message(text: "a")], to: recipients, id: "s\(steps)")
                        #expect(receipt.indices.values.allSatisfy { $0 == 1...1 })
                        #expect(try await texts(survivor, recipients).allSatisfy { $0 == ["a"] })
                        hasEnded = error == nil && steps > 20
                        steps += 1
                    }
                    #expect(begun > 6 && begun < steps)
                }
            }
        }

        @Test("post offices that finish the same sends at once have one effect")
        func race() async throws {
            try await withServer { _, redis, other in
                var orders: [(id: String, text: String)] = []
                for number in 0..<20 {
                    // Recorded, and one or two parts are delivered.
                    let sender = try PostOffice(
                        redis: mortal(redis, after: 8 + number % 3, receivesLast: true), configuration: passive)
                    let (id, text) = ("r\(number)", "\(number)")
                    _ = await errorOf { try await sender.send([Message(text: text)], to: names, id: id) }
                    orders.append((id, text))
                }
                #expect(try await unfinished(other) > 10)
                let offices = try (0..<4).map { _ in try PostOffice(redis: redis, configuration: split) }
                let running = offices.map { office in Task { await office.run() } }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (id, text) in orders {
                        group.addTask { _ = try await offices[0].send([Message(text: text)], to: names, id: id) }
                    }
                    try await group.waitForAll()
                }
                try await until("all sends are finished") { try await unfinished(other) == 0 }
                for all in try await texts(offices[0], names) {
                    #expect(all.sorted() == orders.map(\.text).sorted())
                }
                for task in running {
                    task.cancel()
                    await task.value
                }
            }
        }

        @Test(
            "a post office that takes over a send that is finished meanwhile does nothing, even if its parts are forgotten"
        )
        func overtaken() async throws {
            try await withServer { _, redis, other in
                let sender = try PostOffice(
                    redis: mortal(redis, after: 8, receivesLast: true), configuration: passive)
                let death = await errorOf { try await sender.send([Message(text: "a")], to: names, id: "x") }
                #expect(death?.code == .unfinished)
                #expect(death?.mayHaveRun == true)
                let isFinishedMeanwhile = Atomic(false)
                let isOver = Atomic(false)
                let slow = InterposedRedis(
                    redis,
                    before: { keys in
                        // The next round of taking over begins: the previous one has ended.
                        if isFinishedMeanwhile.load(ordering: .relaxed), keys.count == 1, keys[0].hasSuffix(":splits") {
                            isOver.store(true, ordering: .relaxed)
                        }
                        guard keys == ["HEXISTS"], !isFinishedMeanwhile.load(ordering: .relaxed) else { return }
                        let quick = try PostOffice(redis: other, configuration: passive)
                        try await quick.send([Message(text: "a")], to: names, id: "x")
                        for key in try await other.send("KEYS", "ql:*:sent:*").array?.compactMap(\.string) ?? [] {
                            _ = try await other.send("DEL", .string(key))
                        }
                        isFinishedMeanwhile.store(true, ordering: .relaxed)
                    })
                let office = try PostOffice(redis: slow, configuration: split)
                let running = Task { await office.run() }
                try await until("the send is taken over, and finished meanwhile") { isOver.load(ordering: .relaxed) }
                running.cancel()
                await running.value
                #expect(try await texts(office, names).allSatisfy { $0 == ["a"] })
            }
        }

        @Test(
            "a partition that cannot store its part delays the send, the caller gets an error, and the send is finished later"
        )
        func heldUp() async throws {
            try await withServer { _, redis, other in
                let occupying = InterposedRedis(
                    redis,
                    before: { keys in
                        guard keys.contains(where: { $0.contains(":split:") }) else { return }
                        for number in 0..<8 {
                            _ = try await other.send("SETNX", .string("ql:{default:\(number)}:mail:eve"), "mine")
                        }
                    })
                let sender = try PostOffice(redis: occupying, configuration: passive)
                let error = await errorOf { try await sender.send([Message(text: "a")], to: names, id: "x") }
                #expect(error?.code == .unfinished)
                #expect(error?.mayHaveRun == true)
                #expect(error?.message.contains("mail:eve") == true)
                try await withPostOffice(redis: redis, configuration: split) { office in
                    for number in 0..<8 {
                        let key = RedisArgument.string("ql:{default:\(number)}:mail:eve")
                        #expect(try await other.send("GET", key).string == "mine")
                        _ = try await other.send("DEL", key)
                    }
                    try await until("the send is finished") { try await unfinished(other) == 0 }
                    #expect(try await texts(office, names).allSatisfy { $0 == ["a"] })
                }
            }
        }

        @Test("a reply that is lost at any step is requested again", arguments: [":split:", ":sent:id:x", "PEXPIRE"])
        func lostReplies(_ step: String) async throws {
            try await withServer { server, redis, _ in
                try await withFaultProxy(to: .port(server.port)) { proxy in
                    try await withRedisClient(url: "redis://127.0.0.1:\(proxy.port)") { client in
                        try await withPostOffice(redis: client, configuration: split) { office in
                            for round in 0..<5 {
                                await proxy.dropNextReply(matching: step)
                                let receipt = try await office.send(
                                    [Message(text: "\(round)")], to: names, id: "x\(round)")
                                #expect(receipt.indices.values.allSatisfy { $0 == round + 1...round + 1 })
                            }
                            try await until("all sends are finished") { try await unfinished(redis) == 0 }
                            let expected = (0..<5).map { "\($0)" }
                            // Not through the proxy, which can still drop the reply to a last step.
                            let direct = try PostOffice(redis: redis, configuration: passive)
                            #expect(try await texts(direct, names).allSatisfy { $0 == expected })
                        }
                    }
                }
            }
        }
    }
}
