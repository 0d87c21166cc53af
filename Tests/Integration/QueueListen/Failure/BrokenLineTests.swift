// Connections that break, lose replies and stall, and a server that loses its scripts.
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests.FailureTests {
    @Test("a send whose reply is lost has one effect")
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

    @Test("an older call whose first reply is lost does not supersede a newer one")
    func lostFirstAnswer() async throws {
        try await withProxiedOffice { proxy, proxied, other, _ in
            let warm = Task { try await proxied.mailbox("bob").listen() }
            try await proxied.untilWaiting(1, at: "bob")
            await proxy.refuse()
            await proxy.dropNextReply(matching: "alice")
            let older = Task { try await proxied.mailbox("alice").listen() }
            try await proxy.waitUntil { $0.droppedReplies == 1 }
            let newer = Task { try await other.mailbox("alice").listen() }
            try await other.untilWaiting(1, at: "alice")
            await proxy.heal()
            #expect(try await older.value.word == "superseded")
            try await other.send("a", to: "alice")
            #expect(try await newer.value.word == "a")
            warm.cancel()
        }
    }

    @Test("a listener of a stopped client fails immediately")
    func stoppedClient() async throws {
        try await withServer { server, _, _ in
            var configuration = PostOfficeConfiguration()
            configuration.recheckInterval = .seconds(3600)
            configuration.pollInterval = .milliseconds(20)
            let waiting = try await withRedisClient(url: server.url) { client in
                let office = try PostOffice(redis: client, configuration: configuration)
                let waiting = Task { try await office.mailbox("alice").listen() }
                try await office.untilWaiting(1, at: "alice")
                return waiting
            }
            #expect(await errorOf { _ = try await waiting.value }?.code == .stopped)
        }
    }

    @Test("a lost delivery is repeated")
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

    @Test("listeners whose subscription is killed repeatedly get every message")
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
                // Sometimes the reader is waiting.
                if number % 50 == 0 {
                    try await until("the messages are read") { try await other.mailbox("alice").count <= 1 }
                }
            }
            #expect(try await reading.value == (0..<500).map { "\($0)" })
            killing.cancel()
        }
    }

    @Test("a broken subscription of 5,000 listeners costs a few dozen commands, and they are notified as before")
    func crowd() async throws {
        try await withProxiedOffice { _, proxied, other, redis in
            let names = (0..<5000).map { "user-\($0)" }
            let waiting = names.map { name in Task { try await proxied.mailbox(name).listen() } }
            try await proxied.untilWaiting(5000, at: names[0])
            let before = try await mailScriptCalls(redis)
            for round in 1...5 {
                _ = try await redis.send("CLIENT", "KILL", "TYPE", "PUBSUB")
                // These listeners were checked, or notified.
                try await other.send([Message(text: "\(round)")], to: Array(names[(round * 100)..<(round * 100 + 100)]))
                for number in (round * 100)..<(round * 100 + 100) {
                    #expect(try await waiting[number].value.word == "\(round)")
                }
            }
            // For each break at most two sweeps of 40 batches, the send, and a read for each recipient.
            #expect(try await mailScriptCalls(redis) - before <= 5 * (2 * 40 + 1 + 100))
            for task in waiting { task.cancel() }
        }
    }

    @Test("a subscription whose replies are lost does not prevent reading")
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

    @Test("listeners whose subscription the server drops for slowness get every message")
    func dropped() async throws {
        try await withProxiedOffice { proxy, proxied, other, redis in
            _ = try await redis.send("CONFIG", "SET", "client-output-buffer-limit", "pubsub 64kb 64kb 1")
            let names = (0..<60).map { "user-\($0)" }
            let body = [UInt8](repeating: UInt8(ascii: "x"), count: 900)
            let reading = names.map { name in
                Task {
                    var indices: [Int] = []
                    for try await event in try proxied.mailbox(name).messages() {
                        guard case .message(let message) = event else { break }
                        indices.append(message.index)
                        if message.text == "last" { break }
                    }
                    return indices
                }
            }
            try await proxied.untilWaiting(60, at: names[0])
            await proxy.stall(.toClient)
            // Each send causes wake-ups of 60 KiB, which the client does not read.
            var count = 1
            repeat {
                try await other.send([Message(bytes: body)], to: names)
                count += 1
            } while try await redis.send("CLIENT", "LIST", "TYPE", "PUBSUB").string?.isEmpty == false
            await proxy.unstall(.toClient)
            try await other.send([Message(text: "last")], to: names)
            for task in reading { #expect(try await task.value == Array(1...count)) }
        }
    }

    @Test("without wake-ups messages and newer calls are found by checks")
    func noWakeUps() async throws {
        try await withProxiedOffice(configure: {
            $0.usesWakeUps = false
            $0.pollInterval = .milliseconds(10)
        }) { _, proxied, other, redis in
            let reading = Task { try await take(20, from: try proxied.mailbox("alice")) }
            for number in 0..<20 {
                try await until("the messages are read") { try await other.mailbox("alice").count <= 1 }
                try await other.send("\(number)", to: "alice")
            }
            #expect(try await reading.value == (0..<20).map { "\($0)" })
            #expect(try await redis.send("PUBSUB", "CHANNELS").array?.isEmpty == true)
            // The right one of several listeners gets the message.
            let names = ["carol", "dave", "eve"]
            let others = names.map { name in Task { try await proxied.mailbox(name).listen() } }
            try await proxied.untilWaiting(3, at: "carol")
            for (name, waiting) in zip(names, others).reversed() {
                try await other.send(name, to: name)
                #expect(try await waiting.value.word == name)
            }
            // An older call is superseded too.
            let older = Task { try await proxied.mailbox("bob").listen() }
            try await proxied.untilWaiting(1, at: "bob")
            _ = try await other.mailbox("bob").look()
            #expect(try await older.value.word == "superseded")
        }
    }

    @Test("a user without permission for channels gets messages with more delay")
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

    @Test("the server may lose the scripts at any time")
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

    @Test(
        "a server that stalls for ten seconds loses and repeats nothing, and timeouts are kept"
    )
    func paused() async throws {
        try await withOffice(configure: { $0.callTimeout = .seconds(60) }) { office, _, server in
            let waiting = Task { try await office.mailbox("alice").listen() }
            try await office.untilWaiting(1, at: "alice")
            try await server.pause()
            let sending = Task { try await office.send("a", to: "alice") }
            let impatient = Task { try await office.mailbox("bob").listen(timeout: .milliseconds(100)) }
            async let stall: Void = Task.sleep(for: .seconds(10))
            // The call ends while the server is stalled.
            #expect(await errorOf { _ = try await impatient.value }?.code == .connectionLost)
            try await stall
            try await server.resume()
            #expect(try await sending.value.indices == ["alice": 1...1])
            #expect(try await waiting.value.word == "a")
        }
    }

    @Test("stopping a post office ends all calls of listen")
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
