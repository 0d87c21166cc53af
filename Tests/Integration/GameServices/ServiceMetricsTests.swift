#if MetricsSupport
    import GameServices
    import Hiredis
    import Metrics
    import MetricsTestKit
    import QueueListen
    import RedisDCTesting
    import TestSupport
    import Testing

    @testable import GameServicesTestSupport

    extension GameServicesTests {
        @Suite("Metrics of the services")
        struct ServiceMetricsTests {
            /// The total of a counter, 0 if it does not exist.
            private func total(_ metrics: TestMetrics, _ label: String) -> Int64 {
                (try? metrics.expectCounter(label).totalValue) ?? 0
            }

            /// The labels and dimensions of all metrics never contain a name of a user.
            private func expectNoNames(_ metrics: TestMetrics) {
                let texts = metrics.counters.map { "\($0.label) \($0.dimensions)" }
                let more = metrics.recorders.map { "\($0.label) \($0.dimensions)" }
                #expect(!(texts + more).contains { $0.contains("SECRET") })
            }

            @Test("submits and reads of a leaderboard are counted and timed")
            func leaderboard() async throws {
                let metrics = TestMetrics()
                try await withBoard {
                    $0.instruments.metrics = metrics
                } _: { board, redis, _ in
                    try await board.submit(1, for: "SECRET")
                    try await board.submit(2, for: "SECRET")
                    _ = try await board.top(10)
                    #expect(total(metrics, "leaderboard_submits") == 2)
                    #expect(total(metrics, "leaderboard_reads") == 1)
                    #expect(try metrics.expectTimer("leaderboard_submit_duration").values.count == 2)
                    // A submit that fails is counted, but not timed.
                    let keys = try await redis.send("KEYS", "*").array?.compactMap(\.string) ?? []
                    for key in keys { _ = try await redis.send("SET", .string(key), "x") }
                    let error = await errorOf { try await board.submit(3, for: "SECRET") }
                    #expect(error?.code == .wrongType, "\(String(describing: error))")
                    #expect(total(metrics, "leaderboard_submits") == 3)
                    #expect(try metrics.expectTimer("leaderboard_submit_duration").values.count == 2)
                    expectNoNames(metrics)
                }
            }

            @Test("tickets, matches and tickets that end without one are counted")
            func matchmaker() async throws {
                let metrics = TestMetrics()
                try await withMatchWorld {
                    $0.instruments.metrics = metrics
                } _: { world in
                    try await world.withNode { node in
                        for name in ["SECRET-a", "SECRET-b", "SECRET-c"] { try await node.enqueue(name, rating: 0) }
                        try await until("the match is counted") { total(metrics, "matchmaker_matches") == 1 }
                        try await node.enqueue(
                            "SECRET-d", rating: 0, properties: ["mode": "other"], timeout: .milliseconds(10))
                        try await until("the timeout is counted") { total(metrics, "matchmaker_ended") == 1 }
                        #expect(total(metrics, "matchmaker_tickets") == 4)
                        #expect(total(metrics, "matchmaker_matches") == 1)
                        #expect(total(metrics, "matchmaker_given_up") == 0)
                        expectNoNames(metrics)
                    }
                }
            }

            @Test("operations, buckets, snapshots, gaps and lost sessions of presence are counted")
            func presence() async throws {
                let metrics = TestMetrics()
                var configuration = PresenceConfiguration()
                configuration.instruments.metrics = metrics
                (configuration.ttl, configuration.heartbeatInterval) = (.seconds(60), .milliseconds(300))
                // A loss is reported, and not repaired.
                configuration.repairTime = .zero
                try await withLocalRedis { [configuration] server in
                    try await withRedisClient(url: server.url) { redis in
                        try await withPresence(redis: redis, configuration: configuration) { presence in
                            let bucket = try presence.bucket("SECRET")
                            let losses = try await bucket.losses()
                            let owner = try await bucket.connect(user: "SECRET", client: "phone")
                            try await bucket.put("SECRET", "SECRET", owner: owner)
                            #expect(total(metrics, "presence_operations") == 2)
                            #expect(total(metrics, "presence_batches") == 2)
                            #expect(try metrics.expectGauge("presence_buckets").lastValue == 1)
                            _ = try await bucket.snapshot()
                            let before = total(metrics, "presence_snapshots")
                            #expect(before >= 1)

                            var events = bucket.changes().makeAsyncIterator()
                            guard case .snapshot? = try await events.next() else {
                                Issue.record("the changes do not begin with a snapshot")
                                return
                            }
                            _ = try await redis.send("FLUSHALL")
                            var loss = losses.makeAsyncIterator()
                            #expect(await loss.next()?.owners.count == 1)
                            #expect(total(metrics, "presence_losses") == 1)
                            _ = try await bucket.connect(user: "SECRET", client: "phone")
                            gap: while let event = try await events.next() {
                                if case .gap = event { break gap }
                            }
                            #expect(total(metrics, "presence_gaps") == 1)
                            #expect(total(metrics, "presence_swept") == 0)
                            expectNoNames(metrics)
                        }
                    }
                }
            }
        }
    }
#endif
