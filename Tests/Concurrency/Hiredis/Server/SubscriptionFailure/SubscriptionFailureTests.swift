// Subscriptions whose connection breaks or stops responding.
import Hiredis
import RedisDCTesting
import TestRandom
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Subscriptions under failures", .serialized, .timeLimit(.minutes(10)))
    struct SubscriptionFailureTests {
        static let soon: ClosedRange<Duration> = .milliseconds(1)...(.milliseconds(20))

        // MARK: Broken connections

        @Test("of 100,000 messages under kills none repeats, none is out of order, and gaps announce all losses")
        func kills() async throws {
            try await withServer {
                $0.reconnectDelay = Self.soon
            } _: { server, redis in
                let total = 100_000
                let events = try await redis.subscribe(to: ["n"], buffer: .init(messages: total * 2))
                try await withTestClient(url: server.unixURL) { publisher in
                    // Also at moments that the publisher does not choose.
                    let killing = Task {
                        while !Task.isCancelled {
                            try await redis.killSubscriptions()
                            try await Task.sleep(for: .milliseconds(20))
                        }
                    }
                    var generator = SplitMix(seed: testSeed())
                    for start in stride(from: 0, to: total, by: 1000) {
                        try await until("the topic is subscribed again") {
                            try await publisher.publish(.integer(start), to: "n") == 1
                        }
                        try await publisher.publishAndKill(start + 1..<start + 1000, to: "n", using: &generator)
                    }
                    killing.cancel()
                    _ = await killing.result
                    try await until("the topic is subscribed at last") { try await redis.publish("end", to: "n") == 1 }
                }
                var seen = Continuity()
                while let event = try await events.next(), !seen.add(event) {}
                #expect(seen.backwards == 0)
                #expect(seen.unannounced == 0)
                // Every thousand begins with a subscription and has a kill.
                #expect(seen.gaps > 10 && seen.holes > 10 && seen.messages > 10, "\(seen)")
            }
        }

        /// A check of the order of numbered messages.
        private struct Continuity {
            var (messages, gaps, holes, backwards, unannounced) = (0, 0, 0, 0, 0)
            private var last = -1
            private var hadGap = false

            /// Adds an event, and returns whether it is the end marker.
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

        @Test("the gap is reported after all 10,000 channels are subscribed again")
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

        @Test("each subscriber gets exactly one gap for each broken connection")
        func oneGapEach() async throws {
            try await withServer {
                $0.reconnectDelay = Self.soon
            } _: { _, redis in
                let hasShards = try await ServerFeatures.has(command: "ssubscribe")
                var all: [Subscription] = []
                for number in 0..<20 {
                    let shards: [SubscriptionTopic] = hasShards ? [.shard("s:\(number)")] : []
                    all.append(try await redis.subscribe(to: [.channel("c:\(number % 5)")]))
                    all.append(try await redis.subscribe(to: [.pattern("c:\(number)*")] + shards))
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

        @Test("a subscriber that leaves its last missing topic still gets the gap")
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

        @Test("after a killed server restarts, a subscriber gets a gap, then messages")
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

        // MARK: Silent connections

        enum Death: CaseIterable { case stalled, swallowed }

        @Test(
            "the probe finds a connection that stopped responding, which is replaced with a gap",
            arguments: Death.allCases)
        func silentDeath(_ death: Death) async throws {
            try await withProxiedServer {
                // Long enough that a busy machine does not replace a working connection.
                $0.probeInterval = .milliseconds(500)
                $0.connectTimeout = .seconds(1)
                $0.reconnectDelay = Self.soon
            } _: { proxy, redis, direct in
                let events = try await redis.subscribe(to: ["a"])
                try await expectPong(redis)
                let before = proxy.counters.acceptedConnections
                switch death {
                case .stalled: await proxy.stall()
                case .swallowed: await proxy.swallowReplies()
                }
                // No command is sent, so only the probe can detect the failure.
                try await proxy.waitUntil { $0.acceptedConnections > before }
                _ = try await direct.publish("lost", to: "a")
                await proxy.cutAll()
                await proxy.heal()
                #expect(try await events.next() == .gap(.reconnected))
                // A busy machine may replace the new connection, too.
                let publishing = Task {
                    while !Task.isCancelled {
                        _ = try await direct.publish("x", to: "a")
                        try await Task.sleep(for: .milliseconds(10))
                    }
                }
                defer { publishing.cancel() }
                var event = try await events.next()
                while case .gap? = event { event = try await events.next() }
                guard case .message(let message)? = event else {
                    Issue.record("\(String(describing: event)) instead of a message")
                    return
                }
                #expect(message.text == "x")
            }
        }

        @Test("an idle connection is probed and kept")
        func quiet() async throws {
            try await withServer {
                // Long enough that a busy machine does not replace the connection.
                $0.probeInterval = .seconds(2)
            } _: { _, redis in
                let events = try await redis.subscribe(to: ["a"])
                // Again if a busy machine has replaced the connection.
                try await until("the connection is probed twice, and kept") {
                    let (pings, connections) = (
                        try await redis.calls(of: "PING"), try await redis.info("total_connections_received")
                    )
                    try await until("the connection was probed") { try await redis.calls(of: "PING") >= pings + 2 }
                    return try await redis.info("total_connections_received") == connections
                }
                _ = try await redis.publish("x", to: "a")
                #expect(try await events.texts(1) == ["x"])
            }
        }
    }
}
