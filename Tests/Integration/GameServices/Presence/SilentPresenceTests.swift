// Connections that the network has lost without a word, while Redis can be reached.
import GameServices
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServicesTestSupport

extension PresenceTests {
    @Suite("Silent connections")
    struct SilentPresenceTests {
        @Test("a session and its objects survive connections that fall silent one after the other")
        func silentConnections() async throws {
            var configuration = PresenceConfiguration()
            // Less than the time after which a silent server counts as dead otherwise. The connection is replaced after
            // three quarters of it at the latest, so that a busy machine has some seconds left.
            configuration.ttl = .seconds(28)
            try await withLocalRedis { server in
                try await withRedisClient(url: server.url) { direct in
                    try await withFaultProxy(to: .port(server.port)) { proxy in
                        try await withRedisClient(url: "redis://127.0.0.1:\(proxy.port)") { redis in
                            try await withPresence(redis: redis, configuration: configuration) { presence in
                                let bucket = try presence.bucket("room")
                                let phone = try await bucket.connect(user: "alice", client: "phone")
                                for round in 1...2 {
                                    try await bucket.put("a", "\(round)", owner: phone)
                                    let end = try await sessionEnd(direct)
                                    await proxy.silenceOpenConnections()
                                    try await until("a heartbeat arrives on another connection") {
                                        try await sessionEnd(direct) != end
                                    }
                                }
                                // A session that was lost refuses its owners.
                                try await bucket.put("a", "3", owner: phone)
                                #expect(try await bucket.disconnect(phone))
                            }
                        }
                    }
                }
            }
        }

        /// The session of the only process, and the time until which it lasts.
        private func sessionEnd(_ redis: RedisClient) async throws -> [String] {
            let reply = try await redis.send("ZRANGE", "gs:{default:room}:presence:due", 0, -1, "WITHSCORES")
            return try #require(reply.array).compactMap(\.string)
        }
    }
}
