import Hiredis
import NIOConcurrencyHelpers
import RedisDCTesting
import TestSupport
import Testing

@testable import HiredisTestSupport

extension ServerTests {
    @Suite("Moves of slots and failovers of a cluster", .serialized)
    struct ClusterFailureTests {
        @Test("while a slot moves back and forth, every command runs exactly once")
        func moves() async throws { try await moves(by: .classic) }

        @Test(
            "while a slot moves atomically back and forth, every command runs exactly once",
            .needs(command: "cluster|migrateslots"))
        func atomicMoves() async throws { try await moves(by: .atomic) }

        private func moves(by way: SlotMove) async throws {
            try await withClusterClient { cluster, redis in
                let counts = Record<Int>()
                let script = RedisScript("redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])")
                let isDone = NIOLockedValueBox(false)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for writer in 0..<8 {
                        group.addTask {
                            while !isDone.withLockedValue({ $0 }) {
                                switch writer {
                                case 0, 1, 2: _ = try await redis.send("INCR", "{foo}:1")
                                case 3: _ = try await redis.transaction([["INCR", "{foo}:1"], ["INCR", "{foo}:2"]])
                                case 4, 5: _ = try await redis.script(script, keys: ["{foo}:1", "{foo}:3"])
                                default:
                                    let replies = try await redis.pipeline([["INCR", "{foo}:1"], ["INCR", "bar"]])
                                    #expect(replies.allSatisfy { $0.integer != nil })
                                }
                                counts.add(writer)
                            }
                        }
                    }
                    for round in 0..<10 {
                        let before = counts.count
                        try await cluster.move(slots: [12182], to: cluster.nodes[round % 3], by: way)
                        try await until("the writers go on") { counts.count > before + 20 }
                    }
                    isDone.withLockedValue { $0 = true }
                    try await group.waitForAll()
                }
                #expect(try await redis.integer("GET", "{foo}:1") == counts.count)
                #expect(try await redis.integer("GET", "{foo}:2") == counts.all.count { $0 == 3 })
                #expect(try await redis.integer("GET", "{foo}:3") == counts.all.count { $0 == 4 || $0 == 5 })
                #expect(try await redis.integer("GET", "bar") == counts.all.count { $0 > 5 })
            }
        }

        @Test("keys that have been migrated are found on the new server before the slot has moved")
        func ask() async throws {
            try await withClusterClient { cluster, redis in
                let (source, target) = (cluster.nodes[2], cluster.nodes[0])
                for index in 1...3 { _ = try await redis.send("SET", "{foo}\(index)", .integer(index)) }
                try await cluster.beginMove(slot: 12182, from: source, to: target)
                try await cluster.migrate(key: "{foo}1", from: source, to: target)
                let script = RedisScript("return redis.call('GET', KEYS[1])")
                for index in 1...3 {
                    #expect(try await redis.integer("GET", "{foo}\(index)") == index)
                    #expect(try await redis.script(script, keys: ["{foo}\(index)"]).integer == index)
                }
                let commands = (1...4).map { RedisCommand("GET", "{foo}\($0)") }
                #expect(try await redis.pipeline(commands).map(\.integer) == [1, 2, 3, nil])
                let dedicated = try await redis.withDedicatedConnection { try await $0.pipeline([["GET", "{foo}1"]]) }
                #expect(dedicated[0].integer == 1)
                let blocked = Task { try await redis.block(.brpop("{foo}list"), timeout: patience) { _ in } }
                try await until("the command is blocked on the new server") {
                    try await directly(target) { try await $0.blockedClients() } == 1
                }
                _ = try await redis.send("LPUSH", "{foo}list", "element")
                #expect(try await blocked.value?.array?.last?.string == "element")

                // Both keys are not on one server, so the script waits until the slot has moved. Up to 6.2, the old
                // server answers with ASK, and only the new one refuses the script.
                let both = RedisScript("return redis.call('GET', KEYS[1]) + redis.call('GET', KEYS[2])")
                let sum = Task { try await redis.script(both, keys: ["{foo}1", "{foo}2"]) }
                let transaction = Task { try await redis.transaction([["GET", "{foo}1"], ["GET", "{foo}2"]]) }
                try await until("the server has refused the script") {
                    for node in [source, target]
                    where try await directly(node, { try await $0.info("errorstat_TRYAGAIN") }) != nil { return true }
                    return false
                }
                try await cluster.finishMove(slot: 12182, from: source, to: target)
                #expect(try await sum.value.integer == 3)
                #expect(try await transaction.value.map(\.integer) == [1, 2])
            }
        }

        @Test("first scripts reach the new master of their slot before all other commands")
        func firstCallers() async throws {
            try await withClusterClient(.init()) { cluster, redis in
                let made = Record<Int>()
                let script = RedisScript("return redis.call('RPUSH', KEYS[1], ARGV[1])")
                let stop = redis.sendFirst(for: "list") { connection in
                    made.add(made.count)
                    _ = await redis.answer(script, ["list"], ["first \(made.count)"], on: connection)
                }
                let others = Record<Int>()
                let stopOthers = redis.sendFirst(for: nil) { _ in others.add(0) }
                defer {
                    stop?()
                    stopOthers?()
                }
                let writer = try await ListWriter.start(redis)
                let before = made.count
                let old = try await cluster.master(ofKey: "list")
                await old.kill()
                let atKill = writer.started
                try await cluster.waitUntilHealthy()
                try await writer.progress(10)
                await writer.stop()
                #expect(made.count > before && others.count > 0)
                let list = try await redis.send("LRANGE", "list", 0, -1).array?.compactMap(\.string) ?? []
                // After the last element that the old master had, and before all that were written to the new one.
                let first = try #require(list.firstIndex(of: "first \(made.count)"))
                #expect(list[..<first].allSatisfy { Int($0).map { $0 <= atKill } ?? true })
                #expect(list[first...].dropFirst().allSatisfy { Int($0).map { $0 >= atKill } ?? false })
                // A slot that moves to a server with an open connection.
                let slot = try await redis.masters()[0].send(["CLUSTER", "KEYSLOT", "list"]).integer ?? -1
                let beforeMove = made.count
                let owner = try await cluster.master(ofKey: "list")
                let other = try await cluster.masters().first { $0 !== owner }
                try await cluster.move(slots: [slot], to: #require(other))
                _ = try await redis.send("RPUSH", "list", "x")
                let end = try await redis.send("LRANGE", "list", -2, -1).array?.map(\.string)
                #expect(made.count == beforeMove + 1 && end == ["first \(made.count)", "x"])
            }
        }

        #if MetricsSupport && LoggingSupport && TracingSupport
            @Test("redirects are counted by kind, and a command once however often it is redirected")
            func metrics() async throws {
                let capture = Capture()
                // No node may count as down that a busy machine stops.
                try await withClusterClient(.init(replicasPerMaster: 0, nodeTimeout: .seconds(20))) {
                    $0.instruments = capture.instruments
                } _: { cluster, redis in
                    _ = try await redis.send("SET", "foo", "x")
                    try await cluster.move(slots: [12182], to: cluster.nodes[0])
                    _ = try await redis.send("GET", "foo")
                    try await cluster.beginMove(slot: 12182, from: cluster.nodes[0], to: cluster.nodes[1])
                    _ = try await redis.send("GET", "{foo}2")
                    #expect(capture.count("redis_commands") == 3)
                    #expect(capture.count("redis_redirects", [("kind", "moved")]) == 1)
                    #expect(capture.count("redis_redirects", [("kind", "ask")]) == 1)
                    #expect(capture.count("redis_redirects", [("kind", "again")]) == 0)
                }
            }

            @Test("a client that subscribes before the first answer of a server logs no failure")
            func quietStart() async throws {
                try await withLocalCluster(.init(replicasPerMaster: 0, nodeTimeout: .seconds(20))) { cluster in
                    for _ in 0..<5 {
                        let capture = Capture()
                        var client = try RedisConfiguration(url: cluster.url)
                        client.commandTimeout = patience
                        client.instruments = capture.instruments
                        try await withRedisClient(client) { redis in
                            try await redis.withSubscription(to: ["news"]) { events in
                                _ = try await redis.publish("x", to: "news")
                                #expect(try await events.message().text == "x")
                            }
                        }
                        #expect(
                            capture.log.lines.filter { ["warning", "error"].contains("\($0.level)") }.map(\.message)
                                == [])
                    }
                }
            }
        #endif

        @Test("a script that waits for the end of a move gives up at its deadline")
        func tryAgain() async throws {
            try await withClusterClient { cluster, redis in
                let (source, target) = (cluster.nodes[2], cluster.nodes[0])
                for index in 1...2 { _ = try await redis.send("SET", "{foo}\(index)", .integer(index)) }
                try await cluster.beginMove(slot: 12182, from: source, to: target)
                try await cluster.migrate(key: "{foo}1", from: source, to: target)
                var error: RedisError?
                for _ in 0..<5 {
                    error = await redisError {
                        _ = try await redis.send(["MGET", "{foo}1", "{foo}2"], timeout: .seconds(4))
                    }
                    // An attempt that is under way at the deadline may have run, and ends with this code.
                    if error?.code != .timedOut { break }
                }
                #expect(error?.code == .serverNotReady && error?.mayHaveRun == false && error?.isTransient == true)
                try await cluster.finishMove(slot: 12182, from: source, to: target)
                #expect(try await redis.send("MGET", "{foo}1", "{foo}2").array?.map(\.integer) == [1, 2])
            }
        }

        @Test("a blocked command continues on the server that the slot has moved to")
        func blockedMoves() async throws { try await blockedMoves(by: .classic) }

        @Test(
            "a blocked command continues on the server that the slot has moved to atomically",
            .needs(command: "cluster|migrateslots"))
        func atomicBlockedMoves() async throws { try await blockedMoves(by: .atomic) }

        private func blockedMoves(by way: SlotMove) async throws {
            try await withClusterClient { cluster, redis in
                let blocked = Task { try await redis.block(.brpop("foo"), timeout: patience) { _ in } }
                try await until("the command is blocked") {
                    try await directly(cluster.nodes[2]) { try await $0.blockedClients() } == 1
                }
                try await cluster.move(slots: [12182], to: cluster.nodes[0], by: way)
                try await until("the command is blocked on the new server") {
                    try await directly(cluster.nodes[0]) { try await $0.blockedClients() } == 1
                }
                _ = try await redis.send("LPUSH", "foo", "element")
                #expect(try await blocked.value?.array?.last?.string == "element")
            }
        }

        @Test("after kill -9 of a master the client continues with its replica, and no command runs twice")
        func kill() async throws {
            try await withClusterClient(.init()) { cluster, redis in
                let writer = try await ListWriter.start(redis)
                let old = try await cluster.master(ofKey: "list")
                await old.kill()
                // It waits for the connection to the dead master, and must not do so until its deadline.
                let waiting = Task { try await redis.send("INCR", "{list}:n") }
                try await cluster.waitUntilHealthy()
                let new = try await cluster.master(ofKey: "list")
                #expect(await waitingResult(waiting))
                let before = try await writer.progress()
                await writer.stop()
                let list = try await directly(new) { try await $0.send("LRANGE", "list", 0, -1) }
                let written = list.array?.compactMap(\.integer) ?? []
                #expect(Set(written).count == written.count)
                #expect(Set(written).isDisjoint(with: writer.notRun.all))
                #expect(Set(written).isSuperset(of: writer.acknowledged.all[before...]))
                for key in spreadKeys { #expect(try await redis.send("SET", .string(key), "x").string == "OK") }
            }
        }

        /// Returns whether the command has succeeded, or failed as one that was in flight when the server died.
        private func waitingResult(_ command: Task<RESPValue, any Error>) async -> Bool {
            let error = await redisError { _ = try await command.value }
            return error == nil || error?.code == .connectionLost && error?.mayHaveRun == true
        }

        @Test("a command whose reply is lost is not sent again")
        func lostReply() async throws {
            try await withLocalCluster(.init(replicasPerMaster: 0)) { cluster in
                let owner = try await cluster.master(ofKey: "list")
                try await withFaultProxy(to: .port(owner.port)) { proxy in
                    var configuration = try RedisConfiguration(url: cluster.url)
                    configuration.commandTimeout = patience
                    configuration.addressMap[.tcp(host: "127.0.0.1", port: owner.port)] =
                        .tcp(host: "127.0.0.1", port: proxy.port)
                    try await withRedisClient(configuration) { redis in
                        _ = try await redis.send("RPUSH", "list", "first")
                        let script = RedisScript("return redis.call('RPUSH', KEYS[1], 'lost')")
                        for attempt in 0..<3 {
                            await proxy.dropNextReply(matching: "lost")
                            let error = await redisError {
                                switch attempt {
                                case 0: _ = try await redis.send("RPUSH", "list", "lost")
                                case 1: _ = try await redis.pipeline([["RPUSH", "list", "lost"], ["GET", "foo"]])
                                default: _ = try await redis.transaction([["RPUSH", "list", "lost"]])
                                }
                            }
                            #expect(error?.code == .connectionLost && error?.mayHaveRun == true)
                        }
                        #expect(try await redis.integer("LLEN", "list") == 4)
                        _ = try await redis.script(script, keys: ["list"])
                        #expect(try await redis.integer("LLEN", "list") == 5)
                    }
                }
            }
        }

        @Test("a master that was away is not written to when it returns")
        func oldMasterReturns() async throws {
            try await withClusterClient(.init()) { cluster, redis in
                let writer = try await ListWriter.start(redis)
                let old = try await cluster.master(ofKey: "list")
                try await old.pause()
                try await cluster.waitUntilHealthy()
                let before = try await writer.progress()
                try await old.resume()
                try await cluster.waitUntilHealthy()
                await writer.stop()
                // The old master has thrown away what it was sent: what it had acknowledged would be missing.
                let written = try await redis.send("LRANGE", "list", 0, -1).array?.compactMap(\.integer) ?? []
                #expect(Set(written).count == written.count)
                #expect(Set(written).isSuperset(of: writer.acknowledged.all[before...]))
                try await until("no client is connected to the old master") {
                    let clients = try await directly(old) { try await $0.send("CLIENT", "LIST", "TYPE", "normal") }
                    return clients.string?.split(separator: "\n").count == 1
                }
            }
        }

        @Test("a planned failover is followed at once, and no command fails that was not sent")
        func promote() async throws {
            try await withClusterClient(.init(nodeTimeout: .seconds(20))) { cluster, redis in
                let writer = try await ListWriter.start(redis, timeout: patience)
                let old = try await cluster.master(ofKey: "list")
                try await cluster.promote(cluster.replicas(of: old)[0])
                try await writer.progress()
                await writer.stop()
                let written = try await redis.send("LRANGE", "list", 0, -1).array?.compactMap(\.integer) ?? []
                #expect(Set(written).count == written.count)
                #expect(writer.notRun.all.count <= 1)
                #expect(Set(written).isSuperset(of: writer.acknowledged.all))
            }
        }
    }
}
