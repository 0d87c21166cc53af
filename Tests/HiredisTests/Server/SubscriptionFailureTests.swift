import Hiredis
import RedisDCTesting
import TestRandom
import Testing

extension ServerTests {
    @Suite("Subscriptions when something fails", .timeLimit(.minutes(1)))
    struct SubscriptionFailureTests {
        private static let soon: ClosedRange<Duration> = .milliseconds(1)...(.milliseconds(20))

        // MARK: Breaks of the connection

        @Test("100,000 messages through kills: none twice, none out of order, and no hole that no gap has announced")
        func kills() async throws {
            try await withServer {
                $0.reconnectDelay = Self.soon
            } _: { server, redis in
                let total = 100_000
                let events = try await redis.subscribe(to: ["n"], buffer: .init(messages: total * 2))
                try await withRedisClient(url: server.unixURL) { publisher in
                    let publishing = Task { try await publisher.publish(0..<total, to: "n") }
                    let killing = Task {
                        while !Task.isCancelled {
                            try await redis.killSubscriptions()
                            try await Task.sleep(for: .milliseconds(5))
                        }
                    }
                    try await publishing.value
                    killing.cancel()
                    _ = await killing.result
                    // The last kill may have been the last command: then the subscription has yet to come back.
                    try await until("the subscription stands") { try await redis.publish("end", to: "n") == 1 }
                }
                var seen = Continuity()
                while let event = try await events.next(), !seen.add(event) {}
                #expect(seen.backwards == 0)
                #expect(seen.unannounced == 0)
                #expect(seen.gaps > 0 && seen.holes > 0, "no message was lost: the test has tested nothing")
                #expect(seen.messages > total / 100)
            }
        }

        /// Looks at numbered messages one after the other.
        private struct Continuity {
            var (messages, gaps, holes, backwards, unannounced) = (0, 0, 0, 0, 0)
            private var last = -1
            private var hadGap = false

            /// - Returns: whether it was the end.
            mutating func add(_ event: SubscriptionEvent) -> Bool {
                guard case .message(let message) = event else {
                    gaps += 1
                    hadGap = true
                    return false
                }
                guard let number = Int(message.text) else { return true }
                messages += 1
                if number <= last { backwards += 1 }
                if number > last + 1 {
                    holes += 1
                    if !hadGap { unannounced += 1 }
                }
                (last, hadGap) = (number, false)
                return false
            }
        }

        @Test("10,000 channels are all back when the gap is told")
        func resubscribe() async throws {
            try await withServer {
                $0.reconnectDelay = Self.soon
            } _: { _, redis in
                let names = (0..<10_000).map { "c:\($0)" }
                let events = try await redis.subscribe(to: names.map { .channel($0) }, buffer: .init(messages: 20_000))
                try await redis.killSubscriptions()
                #expect(try await events.next() == .gap(.reconnected))
                let receivers = try await redis.pipeline(names.map { ["PUBLISH", .string($0), "x"] })
                #expect(receivers.allSatisfy { $0.integer == 1 })
                var channels: [String] = []
                for _ in names { channels.append(try await events.message().channel) }
                #expect(channels == names)
            }
        }

        @Test("every subscriber is told of every break, once, whatever it listens to")
        func everybodyIsTold() async throws {
            try await withServer {
                $0.reconnectDelay = Self.soon
            } _: { _, redis in
                var all: [Subscription] = []
                for number in 0..<20 {
                    all.append(try await redis.subscribe(to: [.channel("c:\(number % 5)")]))
                    all.append(try await redis.subscribe(to: [.pattern("c:\(number)*"), .shard("s:\(number)")]))
                }
                for round in 0..<3 {
                    try await redis.killSubscriptions()
                    for events in all { #expect(try await events.next() == .gap(.reconnected)) }
                    for number in 0..<20 { _ = try await redis.publish(.integer(round), to: .channel("c:\(number)")) }
                    for (number, events) in all.enumerated() where number.isMultiple(of: 2) && number < 10 {
                        #expect(try await events.texts(1) == ["\(round)"])
                    }
                    for (number, events) in all.enumerated() where !number.isMultiple(of: 2) {
                        let matching = (0..<20).filter { "\($0)".hasPrefix("\(number / 2)") }
                        #expect(try await events.texts(matching.count) == matching.map { _ in "\(round)" })
                    }
                    for (number, events) in all.enumerated() where number.isMultiple(of: 2) && number >= 10 {
                        #expect(try await events.texts(1) == ["\(round)"])
                    }
                }
            }
        }

        @Test("who leaves the last topic that is not back yet is told of the break all the same")
        func leavesWhileAway() async throws {
            try await withProxiedServer {
                $0.reconnectDelay = Self.soon
            } _: { proxy, redis, direct in
                let events = try await redis.subscribe(to: ["a", "b"])
                await proxy.refuse()
                try await direct.killSubscriptions()
                let refused = proxy.counters.refusedConnections
                try await proxy.waitUntil { $0.refusedConnections > refused }
                await events.unsubscribe(from: ["a"])
                await proxy.heal()
                #expect(try await events.next() == .gap(.reconnected))
                #expect(try await direct.publish("x", to: "b") == 1)
                #expect(try await events.texts(1) == ["x"])
                #expect(try await direct.activeChannels() == ["b"])
            }
        }

        @Test("a server that is killed and comes back: a gap, then messages again")
        func serverDies() async throws {
            try await withServer {
                $0.reconnectDelay = Self.soon
            } _: { server, redis in
                let events = try await redis.subscribe(to: ["a"])
                _ = try await redis.publish("before", to: "a")
                #expect(try await events.texts(1) == ["before"])
                await server.kill()
                try await server.restart()
                #expect(try await events.next() == .gap(.reconnected))
                #expect(try await redis.publish("after", to: "a") == 1)
                #expect(try await events.texts(1) == ["after"])
            }
        }

        // MARK: Silence

        enum Death: CaseIterable { case stalled, deaf }

        @Test(
            "a connection that has died silently is found by the probe and replaced, with a gap",
            arguments: Death.allCases)
        func silentDeath(_ death: Death) async throws {
            try await withProxiedServer {
                $0.probeInterval = .milliseconds(100)
                $0.connectTimeout = .milliseconds(200)
                $0.reconnectDelay = Self.soon
            } _: { proxy, redis, direct in
                let events = try await redis.subscribe(to: ["a"])
                try await expectPong(redis)
                let before = proxy.counters.acceptedConnections
                switch death {
                case .stalled: await proxy.stall()
                case .deaf: await proxy.swallowReplies()
                }
                // Nobody sends a command: only the probe can find out.
                try await proxy.waitUntil { $0.acceptedConnections > before }
                _ = try await direct.publish("lost", to: "a")
                await proxy.cutAll()
                await proxy.heal()
                #expect(try await events.next() == .gap(.reconnected))
                #expect(try await direct.publish("x", to: "a") >= 1)
                #expect(try await events.texts(1) == ["x"])
            }
        }

        @Test("a connection on which nothing happens is probed, and kept")
        func quiet() async throws {
            try await withServer {
                $0.probeInterval = .milliseconds(50)
            } _: { _, redis in
                let events = try await redis.subscribe(to: ["a"])
                let (pings, connections) = (
                    try await redis.calls(of: "PING"), try await redis.info("total_connections_received")
                )
                try await until("it was probed") { try await redis.calls(of: "PING") >= pings + 5 }
                #expect(try await redis.info("total_connections_received") == connections)
                _ = try await redis.publish("x", to: "a")
                #expect(try await events.texts(1) == ["x"])
            }
        }

        // MARK: Slow subscribers

        private func withSlowSubscriber(
            _ buffer: SubscriptionBuffer, _ body: (_ slow: Subscription, RedisClient) async throws -> Void
        ) async throws {
            try await withServer { _, redis in
                // First in line: when the fast one has a message, the slow one's buffer has met it.
                let slow = try await redis.subscribe(to: ["n"], buffer: buffer)
                let fast = try await redis.subscribe(to: ["n"], buffer: .init(messages: 10_000))
                let numbers = (0..<10_000).map { "\($0)" }
                let reading = Task { try await fast.texts(numbers.count) }
                for start in stride(from: 0, to: numbers.count, by: 500) {
                    try await redis.publish(start..<start + 500, to: "n")
                }
                #expect(try await reading.value == numbers)
                try await body(slow, redis)
            }
        }

        @Test(
            "a subscriber that never reads delays nobody; with .dropOldest it finds the count of the lost, and the newest"
        )
        func dropOldest() async throws {
            try await withSlowSubscriber(.init(messages: 100)) { slow, redis in
                #expect(try await slow.next() == .gap(.overflow(missed: 9_900)))
                #expect(try await slow.texts(100) == (9_900..<10_000).map { "\($0)" })
                _ = try await redis.publish("next", to: "n")
                #expect(try await slow.texts(1) == ["next"])
            }
        }

        @Test("with .suspend it finds the oldest, the count of those passed over, and then what comes next")
        func suspend() async throws {
            try await withSlowSubscriber(.init(messages: 100, policy: .suspend)) { slow, redis in
                #expect(try await slow.texts(99) == (0..<99).map { "\($0)" })
                // There is room again, but it has not read all yet.
                let mark = try await redis.subscribe(to: ["n"])
                _ = try await redis.publish("passed over", to: "n")
                _ = try await mark.message()
                #expect(try await slow.texts(1) == ["99"])
                #expect(try await slow.next() == .gap(.overflow(missed: 9_901)))
                _ = try await redis.publish("next", to: "n")
                #expect(try await slow.texts(1) == ["next"])
            }
        }

        @Test("with .fail it finds what had gathered, and then the end with the reason")
        func fail() async throws {
            try await withSlowSubscriber(.init(messages: 100, policy: .fail)) { slow, _ in
                let gathered = try await slow.texts(100)
                #expect(gathered == (0..<100).map { "\($0)" })
                for _ in 0..<2 {
                    #expect(await redisError { _ = try await slow.next() }?.code == .subscriberTooSlow)
                }
            }
        }

        @Test("the bytes that wait are bounded too, but one message always finds room")
        func byteBound() async throws {
            try await withServer { _, redis in
                let slow = try await redis.subscribe(to: ["n"], buffer: .init(messages: 1000, bytes: 1000))
                let fast = try await redis.subscribe(to: ["n"])
                func publish(_ sizes: [Int]) async throws {
                    for size in sizes {
                        _ = try await redis.publish(.bytes([UInt8](repeating: 65, count: size)), to: "n")
                        _ = try await fast.message()
                    }
                }
                try await publish([Int](repeating: 100, count: 50))
                #expect(try await slow.next() == .gap(.overflow(missed: 40)))
                for _ in 0..<10 { #expect(try await slow.message().payload.count == 100) }

                try await publish([100, 200, 5000])
                #expect(try await slow.next() == .gap(.overflow(missed: 2)))
                #expect(try await slow.message().payload.count == 5000)

                try await publish([5000, 10, 20, 30])
                #expect(try await slow.next() == .gap(.overflow(missed: 1)))
                for size in [10, 20, 30] { #expect(try await slow.message().payload.count == size) }
            }
        }

        // MARK: Refusals

        private func withWorker(
            _ body: (_ worker: RedisClient, _ admin: RedisClient) async throws -> Void
        ) async throws {
            try await withServer(.init(aclUsers: ["worker on >pw ~* +@all resetchannels &ok:* &may:*"])) {
                server, admin in
                var configuration = RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: server.port))
                configuration.credentials = .init(username: "worker", password: "pw")
                configuration.reconnectDelay = Self.soon
                try await withRedisClient(configuration) { worker in try await body(worker, admin) }
            }
        }

        @Test("a channel that the user may not listen to fails its own call only, and leaves nothing of it subscribed")
        func notPermitted() async throws {
            try await withWorker { worker, admin in
                let earlier = try await worker.subscribe(to: ["ok:0"])
                async let good1 = worker.subscribe(to: ["ok:1", "ok:2"])
                async let bad = redisError { _ = try await worker.subscribe(to: ["ok:3", "secret", "ok:4"]) }
                async let good2 = worker.subscribe(to: ["ok:5", "may:1"])
                let later = [try await good1, try await good2]
                #expect(await bad?.code == .notPermitted)
                let refusedToo = await redisError { try await earlier.subscribe(to: ["ok:6", "secret"]) }
                #expect(refusedToo?.code == .notPermitted)
                try await until("only what was asked for is subscribed") {
                    try await admin.activeChannels() == ["may:1", "ok:0", "ok:1", "ok:2", "ok:5"]
                }
                for (events, channel) in zip([earlier] + later, ["ok:0", "ok:2", "ok:5"]) {
                    #expect(try await admin.publish(.string(channel), to: .channel(channel)) == 1)
                    #expect(try await events.texts(1) == [channel])
                }
            }
        }

        @Test("a right that is taken away ends the subscriptions that need it; others of the same batch go on")
        func rightTakenAway() async throws {
            try await withWorker { worker, admin in
                let good = try await worker.subscribe(to: (0..<50).map { .channel("ok:\($0)") })
                let bad = try await worker.subscribe(to: ["may:1", "ok:0"])
                let alsoGood = try await worker.subscribe(to: ["ok:0"])
                _ = try await admin.publish("x", to: "may:1")
                // The server ends the connection, and all topics are asked for in one command, which it refuses.
                _ = try await admin.send("ACL", "SETUSER", "worker", "resetchannels", "&ok:*")
                #expect(try await good.next() == .gap(.reconnected))
                #expect(try await alsoGood.next() == .gap(.reconnected))
                #expect(try await bad.texts(1) == ["x"])
                let error = await redisError {
                    while let event = try await bad.next() { #expect(event == .gap(.reconnected)) }
                }
                #expect(error?.code == .notPermitted)
                #expect(try await admin.publish("y", to: "ok:0") == 1)
                #expect(try await good.texts(1) == ["y"])
                #expect(try await alsoGood.texts(1) == ["y"])
                #expect(try await admin.activeChannels().count == 50)
            }
        }

        @Test("a cancelled subscribe leaves nothing subscribed, whenever it is cancelled")
        func cancelledSubscribe() async throws {
            try await withServer { _, redis in
                let other = try await redis.subscribe(to: ["other"])
                var generator = SplitMix(seed: 7)
                var cancelled = 0
                for round in 0..<500 {
                    let subscribing = Task { try await redis.subscribe(to: ["c:\(round)", "other"]) }
                    let pause = Int.random(in: 0...400, using: &generator)
                    if pause > 100 { try await Task.sleep(for: .microseconds(pause)) }
                    subscribing.cancel()
                    do { _ = try await subscribing.value } catch let error as RedisError {
                        #expect(error.code == .cancelled)
                        cancelled += 1
                    }
                }
                #expect(cancelled > 0)
                try await until("nothing else is subscribed") { try await redis.activeChannels() == ["other"] }
                _ = try await redis.publish("x", to: "other")
                #expect(try await other.texts(1) == ["x"])
            }
        }

        @Test("a subscribe that the server does not answer is cancelled at once, and taken back when it answers")
        func cancelledUnanswered() async throws {
            try await withServer { server, redis in
                let other = try await redis.subscribe(to: ["other"])
                try await server.pause()
                let unconfirmed = await redisError {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for name in ["a", "b"] { group.addTask { _ = try await redis.subscribe(to: [.channel(name)]) } }
                        group.cancelAll()
                        try await group.waitForAll()
                    }
                }
                #expect(unconfirmed?.code == .cancelled)
                try await server.resume()
                // Confirmed after all that was written before it.
                try await other.subscribe(to: ["mark"])
                #expect(try await redis.activeChannels() == ["mark", "other"])
            }
        }

        @Test("a subscription that ends while topics are being added fails that call at once")
        func endsWhileJoining() async throws {
            try await withServer { server, redis in
                let events = try await redis.subscribe(to: ["a"])
                try await server.pause()
                let joining = Task { await redisError { try await events.subscribe(to: ["b"]) } }
                // Once it waits, a second call that is cancelled passes it.
                for _ in 0..<20 {
                    let second = Task { try await events.subscribe(to: ["b"]) }
                    second.cancel()
                    _ = await second.result
                }
                events.cancel()
                #expect(await joining.value?.code == .cancelled)
                try await server.resume()
                try await until("nothing is subscribed") { try await redis.activeChannels().isEmpty }
            }
        }

        @Test("without a server subscribe fails at its deadline, and says why")
        func nobodyThere() async throws {
            var configuration = RedisConfiguration(endpoint: .tcp(host: "127.0.0.1", port: 1))
            configuration.commandTimeout = .milliseconds(200)
            try await withRedisClient(configuration) { redis in
                let error = await redisError { _ = try await redis.subscribe(to: ["a"]) }
                #expect(error?.code == .timedOut)
                #expect(error?.message.contains("127.0.0.1:1") == true)
                #expect(error?.message.contains("refused") == true)
            }
        }

        @Test("a client that stops ends its subscriptions with the reason, and takes no new ones")
        func stopped() async throws {
            try await withServer { server, _ in
                let redis = try RedisClient(url: server.url)
                let running = Task { await redis.run() }
                let idle = try await redis.subscribe(to: ["a"])
                let read = try await redis.subscribe(to: ["b"])
                let reader = Task { await redisError { while try await read.next() != nil {} } }
                _ = try await redis.publish("x", to: "b")
                _ = try await redis.publish("gathered", to: "a")
                let mark = try await redis.subscribe(to: ["mark"])
                running.cancel()
                await running.value
                #expect(await reader.value?.code == .clientStopped)
                #expect(try await idle.texts(1) == ["gathered"])
                #expect(await redisError { _ = try await idle.next() }?.code == .clientStopped)
                #expect(await redisError { try await mark.subscribe(to: ["more"]) }?.code == .clientStopped)
                #expect(await redisError { _ = try await redis.subscribe(to: ["c"]) }?.code == .clientStopped)
            }
        }

        // MARK: All at once

        @Test(
            "kills in a tight loop while 200 tasks subscribe, receive and leave: nobody hangs, nothing stays subscribed"
        )
        func churn() async throws {
            try await withServer {
                $0.reconnectDelay = Self.soon
                $0.commandTimeout = .seconds(60)
            } _: { _, redis in
                let killed = Record<Int>()
                let killing = Task {
                    var generator = SplitMix(seed: 99)
                    while !Task.isCancelled {
                        killed.add(try await redis.killSubscriptions())
                        try await Task.sleep(for: .milliseconds(Int.random(in: 0...8, using: &generator)))
                    }
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for seed in 0..<200 {
                        group.addTask {
                            var generator = SplitMix(seed: UInt64(seed))
                            for _ in 0..<20 { try await receiveOne(redis, &generator) }
                        }
                    }
                    try await group.waitForAll()
                }
                killing.cancel()
                _ = await killing.result
                #expect(killed.all.reduce(0, +) > 5)
                try await until("nothing is subscribed") {
                    let patterns = try await redis.integer("PUBSUB", "NUMPAT")
                    return try await redis.activeChannels().isEmpty && patterns == 0
                }
            }
        }

        /// Subscribes to some of a few topics, publishes until something arrives, and leaves in one of several ways.
        private func receiveOne(_ redis: RedisClient, _ generator: inout SplitMix) async throws {
            let channel = "c:\(Int.random(in: 0..<20, using: &generator))"
            let topics: [SubscriptionTopic] =
                generator.isHit(1, of: 4) ? [.pattern("\(channel)*")] : [.channel(channel), "all"]
            let events = try await redis.subscribe(to: topics)
            var hasMessage = false
            while !hasMessage {
                // What is lost with the connection is announced by a gap: then it is sent again.
                _ = try await redis.publish("x", to: .channel(channel))
                guard case .message? = try await events.next() else { continue }
                hasMessage = true
            }
            switch Int.random(in: 0..<3, using: &generator) {
            case 0: events.cancel()
            case 1: await events.unsubscribe(from: topics)
            default: break
            }
        }
    }
}
