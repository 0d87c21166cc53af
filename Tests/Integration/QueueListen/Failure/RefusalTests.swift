// Refusals: no memory, data of other programs, another number of partitions, too many devices, no connection.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests.FailureTests {
    @Test("at maxmemory a send reaches no recipient, and acknowledging works")
    func outOfMemory() async throws {
        try await withOffice { office, redis, _ in
            let mailbox = try office.mailbox("alice")
            try await office.send("a", to: "alice")
            let cursor = try await mailbox.look().cursor
            _ = try await redis.send("CONFIG", "SET", "maxmemory", "1")
            let error = await errorOf { try await office.send([Message(text: "b")], to: ["alice", "bob", "carol"]) }
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

    @Test("data of another program under a mailbox's key is named in the error and not changed")
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

    @Test("a namespace of the first layout is refused with an error that names both layouts")
    func firstLayout() async throws {
        try await withOffice { office, redis, _ in
            _ = try await redis.send("HSET", "ql:{default:0}:meta", "partitions", "1")
            for id in [nil, "x"] {
                let error = await errorOf { try await office.send("a", to: "alice", id: id) }
                #expect(error?.code == .conflict)
                #expect(error?.message.contains("layout 1") == true && error?.message.contains("layout 2") == true)
            }
            #expect(try await redis.send("DBSIZE").integer == 1)
        }
    }

    @Test("a post office with another number of partitions is refused, and the error has both numbers")
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

    @Test("the 65th device is refused")
    func tooManyDevices() async throws {
        try await withOffice { office, _, _ in
            let mailbox = try office.mailbox("alice")
            for number in 0..<64 { _ = try await mailbox.look(device: "\(number)") }
            #expect(await errorOf { _ = try await mailbox.look(device: "one more") }?.code == .conflict)
            #expect(try await mailbox.look(device: "63").word == "timedOut")
        }
    }

    @Test("a send survives a broken connection, and times out without one")
    func unreachable() async throws {
        try await withProxiedOffice(configure: { $0.callTimeout = .milliseconds(500) }) {
            proxy, proxied, other, _ in
            try await until("the connection is made") {
                await errorOf { try await proxied.send("a", to: "alice", id: "a") } == nil
            }
            await proxy.refuse()
            await proxy.cutAll()
            let error = await errorOf { try await proxied.send("b", to: "alice") }
            #expect(error?.code == .notConnected || error?.code == .connectionLost)
            let late = await errorOf { _ = try await proxied.mailbox("alice").listen(timeout: .milliseconds(100)) }
            #expect(late?.code == .notConnected || late?.code == .connectionLost)
            await proxy.heal()
            try await until("the connection is restored") {
                await errorOf { try await proxied.send("c", to: "alice", id: "c") } == nil
            }
            // The other post office has the short timeout too.
            try await until("the message is read") {
                (try? await other.mailbox("alice").look().messages.last?.text) == "c"
            }
        }
    }
}
