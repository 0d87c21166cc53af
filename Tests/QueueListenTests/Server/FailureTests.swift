import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen

/// A server, a post office behind a proxy, another one without, and a client that looks on.
private func withProxiedOffice<Result>(
    configure: (inout PostOfficeConfiguration) -> Void = { _ in },
    _ body: (FaultProxy, _ proxied: PostOffice, _ other: PostOffice, _ redis: RedisClient) async throws -> Result
) async throws -> Result {
    var configuration = PostOfficeConfiguration()
    // Nothing in these tests is found by the slow look.
    configuration.recheckInterval = .seconds(3600)
    configure(&configuration)
    return try await withServer { server, _, redis in
        try await withFaultProxy(to: .port(server.port)) { proxy in
            try await withRedisClient(url: "redis://127.0.0.1:\(proxy.port)") { client in
                try await withPostOffice(redis: client, configuration: configuration) { proxied in
                    try await withPostOffice(redis: redis, configuration: configuration) { other in
                        try await body(proxy, proxied, other, redis)
                    }
                }
            }
        }
    }
}

/// Reads until it has so many, and acknowledges them.
private func take(_ count: Int, from mailbox: Mailbox) async throws -> [String] {
    var texts: [String] = []
    do {
        for try await event in mailbox.messages() {
            guard case .message(let message) = event else {
                Issue.record("\(event)")
                break
            }
            texts.append(message.text)
            if texts.count == count { break }
        }
    } catch {
        // Whoever waits for what it acknowledges would wait long.
        Issue.record(error)
    }
    return texts
}

extension QueueListenTests {
    @Suite("When things fail")
    struct FailureTests {
        // MARK: Connections

        @Test("a send whose answer is lost sends once")
        func lostReply() async throws {
            try await withProxiedOffice { proxy, proxied, other, _ in
                for round in 0..<30 {
                    await proxy.dropNextReply(matching: "alice")
                    let receipt = try await proxied.send("\(round)", to: "alice", "bob")
                    #expect(receipt.indices["alice"] == round + 1...round + 1)
                    try await proxy.waitUntil { $0.droppedReplies == round + 1 }
                }
                for name in ["alice", "bob"] {
                    #expect(try await other.mailbox(name).look().messages.map(\.text) == (0..<30).map { "\($0)" })
                }
            }
        }

        @Test("a delivery that is lost on its way comes again")
        func lostDelivery() async throws {
            try await withProxiedOffice { proxy, proxied, other, _ in
                var cursor: Cursor?
                for round in 0..<30 {
                    try await other.send("\(round)", to: "alice")
                    await proxy.dropNextReply(matching: "alice")
                    let delivery = try await proxied.mailbox("alice").listen(after: cursor)
                    #expect(delivery.word == "\(round)")
                    try await proxy.waitUntil { $0.droppedReplies == round + 1 }
                    cursor = delivery.cursor
                }
            }
        }

        @Test("listeners whose subscription is killed again and again get everything")
        func killedSubscription() async throws {
            try await withProxiedOffice { _, proxied, other, redis in
                let killing = Task {
                    while !Task.isCancelled {
                        _ = try await redis.send("CLIENT", "KILL", "TYPE", "pubsub")
                        try await Task.sleep(for: .milliseconds(100))
                    }
                }
                let reading = Task { try await take(500, from: try proxied.mailbox("alice")) }
                for number in 0..<500 {
                    try await other.send("\(number)", to: "alice")
                    // Now and then it has to be woken.
                    if number % 50 == 0 {
                        try await until("it is read") { try await other.mailbox("alice").count <= 1 }
                    }
                }
                #expect(try await reading.value == (0..<500).map { "\($0)" })
                killing.cancel()
            }
        }

        @Test("a subscription that is swallowed keeps nobody from reading")
        func swallowed() async throws {
            try await withProxiedOffice(configure: {
                $0.callTimeout = .seconds(2)
                $0.pollInterval = .milliseconds(20)
            }) { proxy, proxied, other, _ in
                let waiting = Task { try await proxied.mailbox("alice").listen() }
                try await proxied.untilWaiting(1, at: "alice")
                await proxy.swallowReplies()
                try await other.send("a", to: "alice")
                await proxy.cutAll()
                await proxy.heal()
                #expect(try await waiting.value.word == "a")
            }
        }

        @Test("without wake-ups everything works")
        func noWakeUps() async throws {
            try await withProxiedOffice(configure: {
                $0.usesWakeUps = false
                $0.pollInterval = .milliseconds(10)
            }) { _, proxied, other, redis in
                let reading = Task { try await take(20, from: try proxied.mailbox("alice")) }
                for number in 0..<20 {
                    try await until("it is read") { try await other.mailbox("alice").count <= 1 }
                    try await other.send("\(number)", to: "alice")
                }
                #expect(try await reading.value == (0..<20).map { "\($0)" })
                #expect(try await redis.send("PUBSUB", "CHANNELS").array?.isEmpty == true)
                // Of several that wait, the right one is found.
                let names = ["carol", "dave", "eve"]
                let others = names.map { name in Task { try await proxied.mailbox(name).listen() } }
                try await proxied.untilWaiting(3, at: "carol")
                for (name, waiting) in zip(names, others).reversed() {
                    try await other.send(name, to: name)
                    #expect(try await waiting.value.word == name)
                }
                // An older poll hears of a newer one, too.
                let older = Task { try await proxied.mailbox("bob").listen() }
                try await proxied.untilWaiting(1, at: "bob")
                _ = try await other.mailbox("bob").look()
                #expect(try await older.value.word == "superseded")
            }
        }

        @Test("a user who may use no channel is served, only slower")
        func noChannels() async throws {
            let user = "mail on >secret ~* resetchannels +@all"
            try await withServer(.init(aclUsers: [user])) { server, redis, _ in
                var configuration = PostOfficeConfiguration()
                configuration.pollInterval = .milliseconds(20)
                try await withRedisClient(url: "redis://mail:secret@127.0.0.1:\(server.port)") { client in
                    try await withPostOffice(redis: client, configuration: configuration) { office in
                        let waiting = Task { try await office.mailbox("alice").listen() }
                        try await office.untilWaiting(1, at: "alice")
                        try await office.send("a", to: "alice")
                        #expect(try await waiting.value.word == "a")
                    }
                }
            }
        }

        @Test("the server may forget the scripts at any time")
        func flushedScripts() async throws {
            try await withOffice { office, redis, _ in
                for round in 0..<20 {
                    _ = try await redis.send("SCRIPT", "FLUSH")
                    try await office.send("\(round)", to: "alice")
                    _ = try await redis.send("SCRIPT", "FLUSH")
                    #expect(try await office.mailbox("alice").look().messages.last?.text == "\(round)")
                }
            }
        }

        @Test("a server that stands still for a while loses and repeats nothing")
        func paused() async throws {
            try await withOffice(configure: { $0.callTimeout = .seconds(20) }) { office, _, server in
                let waiting = Task { try await office.mailbox("alice").listen() }
                try await office.untilWaiting(1, at: "alice")
                try await server.pause()
                let sending = Task { try await office.send("a", to: "alice") }
                try await Task.sleep(for: .milliseconds(300))
                try await server.resume()
                #expect(try await sending.value.indices == ["alice": 1...1])
                #expect(try await waiting.value.word == "a")
            }
        }

        // MARK: Lost data

        @Test("with an append-only file a killed server loses nothing, and listening goes on by itself")
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

        @Test("a server that comes back empty resets its readers")
        func restartWithoutData() async throws {
            try await withOffice { office, _, server in
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

        @Test("who waits hears of the first message after FLUSHALL")
        func flushAll() async throws {
            try await withOffice(configure: { $0.recheckInterval = .seconds(3600) }) { office, redis, _ in
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

        @Test("when only the hash is lost, the messages stay and the reader is told")
        func lostHash() async throws {
            try await withOffice { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send([Message("a"), Message("b"), Message("c")], to: ["alice"])
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

        @Test("when only the list is lost, who has not read it is told, and who has is not")
        func lostList() async throws {
            try await withOffice { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send([Message("a"), Message("b")], to: ["alice"])
                let first = try await mailbox.look(device: "behind", limit: 1)
                let last = try await mailbox.look(device: "ahead")
                _ = try await redis.send("DEL", "ql:{default:0}:mail:alice")
                #expect(try await mailbox.look(after: last.cursor, device: "ahead").word == "timedOut")
                try await office.send("c", to: "alice")
                #expect(try await mailbox.look(after: last.cursor, device: "ahead").word == "c")
                let told = try await mailbox.look(after: first.cursor, device: "behind")
                #expect(told.word == "truncated 3")
                #expect(try await mailbox.look(after: told.cursor, device: "behind").word == "c")
            }
        }

        @Test("an end that a failover has lost is noticed by who has seen it, also when others are in its place")
        func fork() async throws {
            for rewritten in 0...3 {
                try await withOffice { office, redis, _ in
                    let mailbox = try office.mailbox("alice")
                    try await office.send("a", to: "alice")
                    for kind in ["box", "mail"] {
                        let key = "ql:{default:0}:\(kind):alice"
                        _ = try await redis.send("COPY", .string(key), .string("before-\(kind)"))
                    }
                    try await office.send([Message("b"), Message("c")], to: ["alice"])
                    let cursor = try await mailbox.look().cursor
                    for kind in ["box", "mail"] {
                        _ = try await redis.send("RENAME", "before-\(kind)", .string("ql:{default:0}:\(kind):alice"))
                    }
                    // By one who does not know either.
                    let stranger = try PostOffice(redis: redis)
                    for number in 0..<rewritten { try await stranger.send("new \(number)", to: "alice") }
                    let delivery = try await mailbox.look(after: cursor)
                    #expect(delivery.word == "forked", "with \(rewritten) written")
                    let rest = try await mailbox.look(after: delivery.cursor)
                    #expect(rest.messages.map(\.text) == ["a"] + (0..<rewritten).map { "new \($0)" })
                }
            }
        }

        @Test("what a failover has lost before anybody read it is told, when its sender sends again")
        func lostUnread() async throws {
            for rewritten in 0...3 {
                try await withServer { _, redis, other in
                    try await withPostOffice(redis: redis) { sender in
                        try await withPostOffice(redis: other) { stranger in
                            let mailbox = try stranger.mailbox("alice")
                            try await sender.send("a", to: "alice")
                            let cursor = try await mailbox.look().cursor
                            for kind in ["box", "mail"] {
                                let key = "ql:{default:0}:\(kind):alice"
                                _ = try await redis.send("COPY", .string(key), .string("before-\(kind)"))
                            }
                            try await sender.send([Message("lost"), Message("lost too")], to: ["alice", "bob"])
                            for kind in ["box", "mail"] {
                                let key = "ql:{default:0}:\(kind):alice"
                                _ = try await redis.send("RENAME", .string("before-\(kind)"), .string(key))
                            }
                            for number in 0..<rewritten { try await stranger.send("new \(number)", to: "alice") }
                            // Nobody can know it yet.
                            #expect(try await mailbox.look(after: cursor).status.isLoss == false)
                            try await sender.send("b", to: "alice", "bob")
                            let delivery = try await mailbox.look(after: cursor)
                            #expect(delivery.word == "reset", "with \(rewritten) written")
                            let rest = try await mailbox.look(after: delivery.cursor).messages.map(\.text)
                            #expect(rest == (0..<rewritten).map { "new \($0)" } + ["b"])
                            // Once: the next one finds what it knows.
                            try await sender.send("c", to: "alice", "bob")
                            #expect(try await mailbox.look(after: delivery.cursor).messages.last?.text == "c")
                        }
                    }
                }
            }
        }

        // MARK: Refusals

        @Test("at maxmemory nobody gets anything of a send, and acknowledging goes on")
        func outOfMemory() async throws {
            try await withOffice { office, redis, _ in
                let mailbox = try office.mailbox("alice")
                try await office.send("a", to: "alice")
                let cursor = try await mailbox.look().cursor
                _ = try await redis.send("CONFIG", "SET", "maxmemory", "1")
                let error = await errorOf { try await office.send([Message("b")], to: ["alice", "bob", "carol"]) }
                #expect(error?.code == .outOfMemory)
                #expect(error?.mayHaveRun == false)
                #expect(try await office.mailbox("bob").inspect() == nil)
                #expect(try await mailbox.look(after: cursor).word == "timedOut")
                #expect(try await redis.send("LLEN", "ql:{default:0}:mail:alice").integer == 0)
                _ = try await redis.send("CONFIG", "SET", "maxmemory", "0")
                try await office.send("b", to: "alice", "bob")
                #expect(try await mailbox.look(after: cursor).word == "b")
            }
        }

        @Test("someone else's data under our keys is named and left alone")
        func wrongType() async throws {
            try await withOffice { office, redis, _ in
                for key in ["box:alice", "mail:alice", "meta", "sent:id:x"] {
                    let key = "ql:{default:0}:\(key)"
                    _ = try await redis.send("SET", .string(key), "mine")
                    let error = await errorOf { try await office.send("a", to: "alice", id: "x") }
                    #expect(error?.code == .wrongType)
                    #expect(error?.message.contains(key) == true)
                    #expect(try await redis.send("GET", .string(key)).string == "mine")
                    #expect(try await redis.send("DBSIZE").integer == 1)
                    _ = try await redis.send("DEL", .string(key))
                }
                _ = try await redis.send("RPUSH", "ql:{default:0}:mail:alice", "mine")
                let error = await errorOf { _ = try await office.mailbox("alice").look() }
                #expect(error?.code == .wrongType)
                #expect(try await redis.send("LLEN", "ql:{default:0}:mail:alice").integer == 1)
            }
        }

        @Test("who is configured for other partitions is refused, with both numbers")
        func partitions() async throws {
            try await withServer { _, redis, _ in
                try await withPostOffice(redis: redis) { _ = try await $0.send("a", to: "alice") }
                var configuration = PostOfficeConfiguration()
                configuration.partitions = 2
                try await withPostOffice(redis: redis, configuration: configuration) { office in
                    let name = ["alice", "bob", "carol", "dave"].first {
                        (try? office.mailbox($0).partition.number) == 0
                    }!
                    let errors = [
                        await errorOf { try await office.send("a", to: name) },
                        await errorOf { _ = try await office.mailbox(name).look() },
                    ]
                    for error in errors {
                        #expect(error?.code == .conflict)
                        #expect(error?.message.contains("1 partitions") == true)
                        #expect(error?.message.contains("with 2") == true)
                    }
                }
            }
        }

        @Test("several partitions serve their mailboxes, and a send across them is refused as a whole")
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
                let error = await errorOf { try await office.send([Message("all")], to: names) }
                #expect(error?.code == .invalidArgument)
                for name in names {
                    let count = try await office.mailbox(name).count
                    #expect(count == 1)
                }
                let keys = try await redis.send("KEYS", "ql:{default:*}:meta").array?.count
                #expect(keys == 8)
            }
        }

        @Test("the 65th device is refused")
        func tooManyDevices() async throws {
            try await withOffice { office, _, _ in
                let mailbox = try office.mailbox("alice")
                for number in 0..<64 { _ = try await mailbox.look(device: "\(number)") }
                #expect(await errorOf { _ = try await mailbox.look(device: "one more") }?.code == .conflict)
                #expect(try await mailbox.look(device: "63").word == "timedOut")
            }
        }

        @Test("a send goes on over a break of the connection, and fails in time when there is none")
        func unreachable() async throws {
            try await withProxiedOffice(configure: { $0.callTimeout = .milliseconds(500) }) {
                proxy, proxied, other, _ in
                try await proxied.send("a", to: "alice")
                await proxy.refuse()
                await proxy.cutAll()
                let error = await errorOf { try await proxied.send("b", to: "alice") }
                #expect(error?.code == .notConnected || error?.code == .connectionLost)
                let late = await errorOf { _ = try await proxied.mailbox("alice").listen(timeout: .milliseconds(100)) }
                #expect(late?.code == .notConnected || late?.code == .connectionLost)
                await proxy.heal()
                try await until("it is back") {
                    await errorOf { try await proxied.send("c", to: "alice", id: "c") } == nil
                }
                #expect(try await other.mailbox("alice").look().messages.last?.text == "c")
            }
        }

        // MARK: Durability

        @Test("a send waits for replicas, and says when they do not answer")
        func replicated() async throws {
            try await withOffice(configure: { $0.callTimeout = .seconds(2) }) { office, redis, server in
                let error = await errorOf { try await office.send("a", to: "alice", durability: .replicated(1)) }
                #expect(error?.code == .notDurable)
                #expect(error?.mayHaveRun == true)
                try await withLocalRedis(.init(extra: ["replicaof 127.0.0.1 \(server.port)"], waitUntilLoaded: false)) {
                    replica in
                    try await until("the replica is there") {
                        try await redis.send("INFO", "replication").string?.contains("state=online") == true
                    }
                    let receipt = try await office.send("b", to: "alice", durability: .replicated(1))
                    #expect(receipt.durability == .replicated(1))
                    try await withRedisClient(url: replica.url) { client in
                        let length = try await client.send("LLEN", "ql:{default:0}:mail:alice").integer
                        #expect(length == 2)
                    }
                }
            }
        }

        @Test("a server that cannot tell what is on its disk is an error, and nothing is sent")
        func fsynced() async throws {
            try await withOffice { office, redis, _ in
                let error = await errorOf { try await office.send("a", to: "alice", durability: .fsynced) }
                #expect(error?.code == .unsupported)
                let size = try await redis.send("DBSIZE").integer
                #expect(size == 0)
            }
        }

        @Test("stopping the post office ends all who listen")
        func stop() async throws {
            try await withServer { _, redis, _ in
                let office = try PostOffice(redis: redis)
                let running = Task { await office.run() }
                let waiting = Task { try await office.mailbox("alice").listen() }
                try await office.untilWaiting(1, at: "alice")
                running.cancel()
                #expect(await errorOf { _ = try await waiting.value }?.code == .stopped)
                #expect(await errorOf { _ = try await office.mailbox("alice").listen() }?.code == .stopped)
                await running.value
            }
        }
    }
}
