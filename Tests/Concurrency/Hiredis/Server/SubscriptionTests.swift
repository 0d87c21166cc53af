import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Publish and subscribe", .serialized, .timeLimit(.minutes(10)))
    struct SubscriptionTests {
        // MARK: Delivery

        @Test("messages arrive in the order of publication")
        func order() async throws {
            try await withServer { server, redis in
                let events = try await redis.subscribe(to: ["n"], buffer: .init(messages: 10_000))
                try await withTestClient(url: server.unixURL) { other in
                    try await other.publish(0..<10_000, to: "n")
                }
                #expect(try await events.texts(10_000) == (0..<10_000).map { "\($0)" })
            }
        }

        @Test("publish returns the number of connections that receive the message")
        func receivers() async throws {
            try await withServer { server, redis in
                #expect(try await redis.publish("nobody hears", to: "news") == 0)
                let first = try await redis.subscribe(to: ["news"])
                #expect(try await redis.publish("1", to: "news") == 1)
                try await withTestClient(url: server.unixURL) { other in
                    let second = try await other.subscribe(to: ["news"])
                    #expect(try await redis.publish("2", to: "news") == 2)
                    #expect(try await second.texts(1) == ["2"])
                }
                #expect(try await first.texts(2) == ["1", "2"])
            }
        }

        @Test("a message published after subscribe returns always arrives")
        func confirmed() async throws {
            try await withServer { server, redis in
                try await withTestClient(url: server.unixURL) { other in
                    for round in 0..<500 {
                        let events = try await redis.subscribe(to: ["c:\(round)"])
                        #expect(try await other.publish(.integer(round), to: "c:\(round)") == 1)
                        #expect(try await events.message().text == "\(round)")
                    }
                }
            }
        }

        @Test("a pattern receives all matching channels, and a channel also subscribed by name arrives twice")
        func patterns() async throws {
            try await withServer { _, redis in
                try await redis.withSubscription(to: [.pattern("match:*"), "match:7"]) { events in
                    _ = try await redis.publish("a", to: "match:1")
                    _ = try await redis.publish("not wanted", to: "other")
                    #expect(try await redis.publish("b", to: "match:7") == 2)
                    let first = try await events.message()
                    #expect(
                        first == RedisMessage(channel: "match:1", topic: .pattern("match:*"), payload: Array("a".utf8)))
                    let both = [try await events.message(), try await events.message()]
                    #expect(both.allSatisfy { $0.channel == "match:7" && $0.text == "b" })
                    #expect(Set(both.map(\.topic)) == [.pattern("match:*"), "match:7"])
                }
                let refused = await redisError { _ = try await redis.publish("x", to: .pattern("match:*")) }
                #expect(refused?.code == .invalidArgument)
            }
        }

        @Test("payloads of arbitrary bytes, empty and of a megabyte arrive unchanged")
        func bytes() async throws {
            try await withServer { _, redis in
                let payloads = [
                    (0...255).map { UInt8($0) } + Array("\r\n$5\r\n*3\r\n".utf8), [],
                    [UInt8](repeating: 0xFF, count: 1 << 20),
                ]
                let events = try await redis.subscribe(to: ["bytes"])
                for payload in payloads { _ = try await redis.publish(.bytes(payload), to: "bytes") }
                for payload in payloads { #expect(try await events.message().payload == payload) }
            }
        }

        // MARK: One connection, one SUBSCRIBE

        @Test("subscribers of a topic share one SUBSCRIBE and one UNSUBSCRIBE and each get all messages")
        func shared() async throws {
            try await withServer { _, redis in
                var all: [Subscription] = []
                for _ in 0..<5 { all.append(try await redis.subscribe(to: ["news"])) }
                #expect(try await redis.subscribers(of: "news") == 1)
                #expect(try await redis.calls(of: "SUBSCRIBE") == 1)
                for text in ["a", "b", "c"] { _ = try await redis.publish(.string(text), to: "news") }
                for events in all { #expect(try await events.texts(3) == ["a", "b", "c"]) }

                for _ in 0..<4 { all.removeFirst().cancel() }
                // The server confirms this after all commands of the four subscribers.
                try await all[0].subscribe(to: ["later"])
                #expect(try await redis.calls(of: "UNSUBSCRIBE") == 0)
                _ = try await redis.publish("d", to: "news")
                #expect(try await all[0].texts(1) == ["d"])
                all.removeFirst().cancel()
                try await until("no client is subscribed") { try await redis.subscribers(of: "news") == 0 }
            }
        }

        @Test("all subscriptions of a client share one connection")
        func oneConnection() async throws {
            try await withServer { _, redis in
                let hasShards = try await ServerFeatures.has(command: "ssubscribe")
                var all: [Subscription] = []
                for number in 0..<50 {
                    let shards: [SubscriptionTopic] = hasShards ? [.shard("s:\(number)")] : []
                    all.append(try await redis.subscribe(to: ["c:\(number)", .pattern("p:\(number)")] + shards))
                }
                #expect(try await redis.subscriptionConnections() == 1)
                #expect(try await redis.info("connected_clients") == "2")
                #expect(try await redis.activeChannels().count == 50)
                all.removeAll()
                try await until("nothing is subscribed") { try await redis.subscriptionConnections() == 0 }
            }
        }

        @Test("100,000 channels in one call use one connection and a hundred commands")
        func manyChannels() async throws {
            try await withServer { _, redis in
                let events = try await redis.subscribe(to: (0..<100_000).map { .channel("c:\($0)") })
                #expect(try await redis.calls(of: "SUBSCRIBE") <= 110)
                #expect(try await redis.subscriptionConnections() == 1)
                #expect(try await redis.activeChannels().count == 100_000)
                let some = ["c:0", "c:999", "c:1000", "c:54321", "c:99999"]
                for name in some { #expect(try await redis.publish("x", to: .channel(name)) == 1) }
                for name in some { #expect(try await events.message().channel == name) }
            }
        }

        // MARK: Joining and leaving

        @Test("topics can be added to and removed from a subscription")
        func moreTopics() async throws {
            try await withServer { _, redis in
                let events = try await redis.subscribe(to: ["a"])
                try await events.subscribe(to: ["b", "c"])
                for name in ["a", "b", "c"] { #expect(try await redis.publish(.string(name), to: .channel(name)) == 1) }
                let mark = try await redis.subscribe(to: ["mark"])
                _ = try await redis.publish("all has arrived", to: "mark")
                _ = try await mark.message()
                await events.unsubscribe(from: ["a", "c", "never had"])
                try await until("a and c are left") { try await redis.activeChannels() == ["b", "mark"] }
                // Buffered messages are still delivered.
                #expect(try await events.texts(3) == ["a", "b", "c"])
                try await events.subscribe(to: ["a", "b", "b"])
                #expect(try await redis.activeChannels() == ["a", "b", "mark"])
                _ = try await redis.publish("again", to: "b")
                #expect(try await events.texts(1) == ["again"])
            }
        }

        @Test("releasing the last reference unsubscribes, and an iterator is a reference")
        func lastReference() async throws {
            try await withServer { _, redis in
                var iterator: Subscription.AsyncIterator?
                do {
                    let events = try await redis.subscribe(to: ["a"])
                    iterator = events.makeAsyncIterator()
                    let dropped = try await redis.subscribe(to: ["b"])
                    _ = try await redis.publish("x", to: "b")
                    #expect(try await dropped.texts(1) == ["x"])
                }
                try await until("b is left") { try await redis.activeChannels() == ["a"] }
                _ = try await redis.publish("y", to: "a")
                #expect(
                    try await iterator?.next() == .message(.init(channel: "a", topic: "a", payload: Array("y".utf8))))
                iterator = nil
                try await until("a is left") { try await redis.activeChannels().isEmpty }
            }
        }

        @Test("a cancelled subscription unsubscribes and ends after its buffered messages")
        func cancelSubscription() async throws {
            try await withServer { _, redis in
                let events = try await redis.subscribe(to: ["a", "mark"])
                let other = try await redis.subscribe(to: ["mark"])
                _ = try await redis.publish("x", to: "a")
                _ = try await redis.publish("y", to: "mark")
                _ = try await other.message()
                events.cancel()
                #expect(try await events.texts(2) == ["x", "y"])
                #expect(try await events.next() == nil)
                try await until("a is left") { try await redis.activeChannels() == ["mark"] }
                let waiting = try await redis.subscribe(to: ["b"])
                let reader = Task { try await waiting.next() }
                waiting.cancel()
                #expect(try await reader.value == nil)
            }
        }

        @Test("the scoped form unsubscribes when its body returns or throws")
        func scoped() async throws {
            struct Enough: Error {}
            try await withServer { _, redis in
                let text = try await redis.withSubscription(to: ["a"]) { events in
                    _ = try await redis.publish("x", to: "a")
                    return try await events.message().text
                }
                #expect(text == "x")
                await #expect(throws: Enough.self) {
                    try await redis.withSubscription(to: ["b"]) { _ in throw Enough() }
                }
                try await until("nothing is subscribed") { try await redis.activeChannels().isEmpty }
            }
        }

        @Test("a loop over a subscription, decoded or not, throws RedisError as a typed error")
        func typedLoop() async throws {
            try await withServer { _, redis in
                func read(_ subscription: Subscription) async throws(RedisError) -> [String] {
                    var texts: [String] = []
                    for try await event in subscription {
                        if case .message(let message) = event { texts.append(message.text) }
                        if texts.count == 2 { break }
                    }
                    for try await event in subscription.decoded(as: Int.self) {
                        if case .message(let number, _) = event { return texts + ["\(number)"] }
                    }
                    return texts
                }
                let subscription = try await redis.subscribe(to: ["news"])
                for text in ["1", "2", "3"] { #expect(try await redis.publish(.string(text), to: "news") == 1) }
                #expect(try await read(subscription) == ["1", "2", "3"])
                let reading = Task { () async -> RedisError? in
                    do throws(RedisError) { _ = try await read(subscription) } catch { return error }
                    return nil
                }
                reading.cancel()
                #expect(await reading.value?.code == .cancelled)
            }
        }

        @Test("a cancelled reader throws, and another reader receives the next message")
        func cancelReader() async throws {
            try await withServer { _, redis in
                let events = try await redis.subscribe(to: ["a"])
                let reader = Task { await redisError { _ = try await events.next() } }
                reader.cancel()
                #expect(await reader.value?.code == .cancelled)
                _ = try await redis.publish("x", to: "a")
                #expect(try await events.texts(1) == ["x"])
            }
        }

        @Test("cancelling a reader that already has its message does not end the next reader's wait")
        func cancelLate() async throws {
            try await withServer { _, redis in
                let events = try await redis.subscribe(to: ["a"])
                let (firstThread, secondThread) = (ManualExecutor(), ManualExecutor())
                let first = Task(executorPreference: firstThread) { try await events.next() }
                firstThread.run()
                _ = try await redis.publish("x", to: "a")
                try await until("the first reader has been given its message") { firstThread.hasWork }
                let second = Task(executorPreference: secondThread) { try await events.next() }
                secondThread.run()
                first.cancel()
                _ = try await redis.publish("y", to: "a")
                try await until("the second reader has been given something") { secondThread.hasWork }
                secondThread.run()
                firstThread.run()
                #expect(try await first.value == .message(.init(channel: "a", topic: "a", payload: Array("x".utf8))))
                #expect(try await second.value == .message(.init(channel: "a", topic: "a", payload: Array("y".utf8))))
            }
        }

        @Test("an empty topic and a buffer without capacity are refused before any command is sent")
        func badArguments() async throws {
            try await withServer { _, redis in
                for buffer in [SubscriptionBuffer(messages: 0), SubscriptionBuffer(bytes: 0)] {
                    let error = await redisError { _ = try await redis.subscribe(to: ["a"], buffer: buffer) }
                    #expect(error?.code == .invalidArgument)
                }
                let error = await redisError { _ = try await redis.subscribe(to: ["a", ""]) }
                #expect(error?.code == .invalidArgument)
                let calls = try await redis.calls(of: "SUBSCRIBE")
                #expect(calls == 0)
            }
        }

        // MARK: Typed messages

        private struct Move: Codable, Hashable {
            var player: String
            var x: Int
        }

        /// A codec of two bytes in big-endian order.
        private struct Big16: MessageCodec {
            struct WrongLength: Error {}
            func encode(_ message: UInt16) -> [UInt8] { [UInt8(message >> 8), UInt8(message & 0xFF)] }
            func decode(_ bytes: [UInt8]) throws -> UInt16 {
                guard bytes.count == 2 else { throw WrongLength() }
                return UInt16(bytes[0]) << 8 | UInt16(bytes[1])
            }
        }

        @Test("Codable messages are decoded, others are passed on raw, and the sequence continues")
        func codable() async throws {
            try await withServer { _, redis in
                let events = try await redis.subscribe(to: ["moves"])
                let moves = [Move(player: "ann\u{0}🎲", x: -1), Move(player: "", x: .max)]
                #expect(try await redis.publish(json: moves[0], to: "moves") == 1)
                _ = try await redis.publish("no json", to: "moves")
                _ = try await redis.publish(json: moves[1], to: "moves")
                var seen: [Move] = []
                var strange: [String] = []
                for try await event in events.decoded(as: Move.self) {
                    switch event {
                    case .message(let move, let raw):
                        #expect(raw.channel == "moves")
                        seen.append(move)
                    case .undecodable(let raw, let error):
                        #expect(error is DecodingError)
                        strange.append(raw.text)
                    case .gap: Issue.record("an unexpected gap")
                    }
                    if seen.count == 2 { break }
                }
                #expect(seen == moves)
                #expect(strange == ["no json"])
            }
        }

        @Test("a custom codec is used in both directions, and gaps pass through")
        func ownCodec() async throws {
            try await withServer { _, redis in
                let events = try await redis.subscribe(to: ["n"], buffer: .init(messages: 3))
                let all = try await redis.subscribe(to: ["n"])
                for number in [1, 513, 7, 9] as [UInt16] { _ = try await redis.publish(number, to: "n", with: Big16()) }
                _ = try await redis.publish("abc", to: "n")
                for _ in 0..<5 { _ = try await all.message() }
                var iterator = events.decoded(with: Big16()).makeAsyncIterator()
                guard case .gap(.overflow(missed: 2))? = try await iterator.next() else {
                    Issue.record("the gap is missing")
                    return
                }
                for expected in [7, 9] as [UInt16] {
                    guard case .message(expected, let raw)? = try await iterator.next() else {
                        Issue.record("\(expected) is missing")
                        return
                    }
                    #expect(raw.payload == Big16().encode(expected))
                }
                guard case .undecodable(let raw, let error)? = try await iterator.next() else {
                    Issue.record("the undecodable message is missing")
                    return
                }
                #expect(raw.text == "abc" && error is Big16.WrongLength)
            }
        }
    }
}
