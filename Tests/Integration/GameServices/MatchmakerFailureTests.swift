import Hiredis
import QueueListen
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

extension GameServicesTests {
    @Suite("Matchmakers and failures")
    struct MatchmakerFailureTests {
        @Test("a match whose node died before it notified anybody is sent to all by another node")
        func untold() async throws {
            try await withMatchWorld { world in
                let node = try world.node()
                _ = try await node.enqueue("alice", rating: 0, ticket: "a")
                // The script alone, as if the process had been killed after it.
                let reply = try await node.run(MatchmakerScripts.enqueue, ["b", "bob", 5, "", 0])
                #expect(reply.array?.first?.string == "matched")
                #expect(try await world.mail("alice").isEmpty)
                try await world.withNode { _ in
                    let match = try await world.match(of: "alice")
                    #expect(match.players.map(\.ticket) == ["b", "a"])
                    #expect(try await world.match(of: "bob") == match)
                }
            }
        }

        @Test("nobody is notified while one of the mailboxes is full, and all are notified when it has room")
        func full() async throws {
            try await withMatchWorld { world in
                var limits = MailboxLimits()
                limits.maxMessages = 1
                let mailbox = try world.office.mailbox("bob")
                try await mailbox.setLimits(limits)
                try await world.office.send("full", to: "bob")
                try await world.withNode { node in
                    _ = try await node.enqueue("alice", rating: 0)
                    guard case .matched(let match) = try await node.enqueue("bob", rating: 0).state else {
                        Issue.record("not matched")
                        return
                    }
                    #expect(try await world.mail("alice").isEmpty)
                    let cursor = try await mailbox.listen(timeout: .zero).cursor
                    _ = try await mailbox.listen(after: cursor, timeout: .zero)
                    #expect(try await world.match(of: "bob") == match)
                    #expect(try await world.match(of: "alice") == match)
                }
            }
        }

        @Test("the tickets of a dead node are not matched, and their players are notified")
        func deadNode() async throws {
            try await withMatchWorld {
                $0.nodeTTL = .seconds(1)
                $0.window = MatchWindow(start: 10, step: 0, every: .seconds(1), max: 10)
            } _: { world in
                // It does not run, so it does not renew its lease.
                let dead = try world.node()
                let ticket = try await dead.enqueue("alice", rating: 0).ticket
                _ = try await dead.enqueue("zoe", rating: 100)
                let key = RedisArgument.string(dead.keys[3])
                try await until("the lease has ended") {
                    let end = try await world.redis.send("ZSCORE", key, .string(dead.node)).string.flatMap { Int($0) }
                    let now = try await world.redis.send("TIME").array?.first?.string.flatMap { Int($0) }
                    return now! * 1000 > end!
                }
                var patient = world
                patient.configuration.nodeTTL = .seconds(3600)
                let node = try patient.node()
                // The search meets the dead ticket, and ends it.
                let bob = try await node.enqueue("bob", rating: 0)
                #expect(bob.state == .waiting)
                #expect(try await node.state(of: ticket) == .lost)
                #expect(try await world.end(of: "alice") == .lost)
                // The sweep ends the others.
                try await world.withNode { _ in
                    let reason = try await world.end(of: "zoe")
                    #expect(reason == .lost)
                    let state = try await node.state(of: bob.ticket)
                    #expect(state == .waiting)
                }
            }
        }

        @Test("a node that runs keeps its tickets for longer than the lease")
        func renewed() async throws {
            try await withMatchWorld {
                // Long enough that a busy machine renews it in time.
                $0.nodeTTL = .seconds(3)
            } _: { world in
                try await world.withNode { node in
                    let ticket = try await node.enqueue("alice", rating: 0).ticket
                    func end() async throws -> Int {
                        try await world.redis.send("ZSCORE", .string(node.keys[3]), .string(node.node)).string
                            .flatMap { Int($0) }!
                    }
                    let first = try await end()
                    // Two lifetimes of the lease, by the server's clock.
                    try await until("the lease is renewed") { try await end() > first + 6000 }
                    #expect(try await node.state(of: ticket) == .waiting)
                }
            }
        }

        @Test("an enqueue whose reply is lost adds one ticket, and a match whose reply is lost is sent once")
        func lostReply() async throws {
            try await withMatchWorld { world in
                let proxy = try await FaultProxy.start(to: .port(world.server.port))
                var client = try RedisConfiguration(url: "redis://127.0.0.1:\(proxy.port)")
                client.commandTimeout = .seconds(120)
                try await withRedisClient(client) { redis in
                    var configuration = world.configuration
                    configuration.callTimeout = .seconds(240)
                    let node = try Matchmaker("duel", redis: redis, office: world.office, configuration: configuration)
                    await proxy.dropNextReply(matching: "alice")
                    #expect(try await node.enqueue("alice", rating: 0).state == .waiting)
                    #expect(try await node.counts().waiting == 1)
                    await proxy.dropNextReply(matching: "bob")
                    let state = try await node.enqueue("bob", rating: 0).state
                    #expect(try await state == .matched(world.match(of: "alice")))
                    #expect(try await state == .matched(world.match(of: "bob")))
                    #expect(try await node.counts().waiting == 0)
                }
                await proxy.stop()
            }
        }

        @Test("a ticket whose record Redis has lost stops no other ticket, and nothing of it remains")
        func lostRecord() async throws {
            try await withMatchWorld { world in
                let node = try world.node()
                let ticket = try await node.enqueue("alice", rating: 0, timeout: .seconds(60)).ticket
                let (state, due) = (RedisArgument.string(node.keys[0]), RedisArgument.string(node.keys[2]))
                _ = try await world.redis.send("HDEL", state, .string("t:" + ticket))
                _ = try await world.redis.send("ZADD", due, 1, .string("t" + ticket))
                _ = try await node.tick()
                // The member that stays.
                #expect(try await world.redis.send("ZCARD", due).integer == 1)
                #expect(try await node.enqueue("bob", rating: 0).state == .waiting)
                #expect(try await world.waiting(node).count == 1)
                #expect(try await node.enqueue("carol", rating: 0).state != .waiting)
                #expect(try await node.enqueue("alice", rating: 0).state == .waiting)
                // The node has died.
                _ = try await world.redis.send("ZADD", .string(node.keys[3]), 1, .string(node.node))
                _ = try await world.node().tick()
                #expect(try await world.redis.send("ZCARD", .string(node.keys[1])).integer == 1)
            }
        }

        @Test("an ended ticket is forgotten after its lifetime, and nothing of it remains")
        func forgotten() async throws {
            try await withMatchWorld { world in
                let node = try world.node()
                let ticket = try await node.enqueue("alice", rating: 0).ticket
                let other = try await node.enqueue("bob", rating: 0).ticket
                _ = try await world.match(of: "alice")
                // As if the lifetime had passed.
                for id in [ticket, other] {
                    _ = try await world.redis.send("ZADD", .string(node.keys[2]), 1, .string("f" + id))
                }
                _ = try await node.tick()
                #expect(await errorOf { _ = try await node.state(of: ticket) }?.code == .notFound)
                // Except for the members that stay.
                #expect(try await world.redis.send("ZCARD", .string(node.keys[1])).integer == 1)
                #expect(try await world.redis.send("ZCARD", .string(node.keys[2])).integer == 1)
                let fields = try await world.redis.send("HKEYS", .string(node.keys[0])).array?.compactMap(\.string)
                #expect(Set(fields ?? []) == ["rules", "stamp"])
            }
        }
    }
}
