import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests.FailureTests {
    @Test("a send waits for replicas, and throws if they do not confirm")
    func replicated() async throws {
        try await withOffice(configure: { $0.callTimeout = .seconds(15) }) { office, redis, server in
            let error = await errorOf { try await office.send("a", to: "alice", durability: .replicated(1)) }
            #expect(error?.code == .notDurable)
            #expect(error?.mayHaveRun == true)
            try await withLocalRedis(.init(extra: ["replicaof 127.0.0.1 \(server.port)"], waitUntilLoaded: false)) {
                replica in
                try await until("the replica is connected") {
                    try await redis.send("INFO", "replication").string?.contains("state=online") == true
                }
                let receipt = try await office.send("b", to: "alice", durability: .replicated(1))
                #expect(receipt.durability == .replicated(1))
                try await withRedisClient(url: replica.url) { client in
                    let length = try await client.send("LLEN", "ql:{default:0}:mail:alice").integer.map { $0 / 2 }
                    #expect(length == 2)
                }
            }
        }
    }

    @Test("a listener whose registration is lost in a failover is notified by the new server")
    func lostRegistration() async throws {
        var configuration = PostOfficeConfiguration()
        configuration.recheckInterval = .seconds(3600)
        try await withReplicatedServers { servers in
            try await withRedisClient(url: servers.replica.url) { replica in
                try await withRedisClient(url: servers.url) { redis in
                    try await withPostOffice(redis: redis, configuration: configuration) { office in
                        try await office.send("before", to: "alice")
                        let mailbox = try office.mailbox("alice")
                        let cursor = try await mailbox.look().cursor
                        try await servers.cutReplication()
                        let listening = Task { try await mailbox.listen(after: cursor) }
                        try await withRedisClient(url: servers.server.url) { old in
                            try await until("the listener is registered") {
                                try await old.send("HGET", "ql:{default:0}:box:alice", "m").bytes?.count
                                    != replica.send("HGET", "ql:{default:0}:box:alice", "m").bytes?.count
                            }
                        }
                        await servers.promote()
                        try await withPostOffice(redis: replica) { try await $0.send("after", to: "alice") }
                        let delivery = try await listening.value
                        #expect(delivery.messages.map(\.text) == ["after"], "\(delivery.status)")
                    }
                }
            }
        }
    }
}
