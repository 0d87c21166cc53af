import Foundation
import GameServices
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServicesTestSupport

extension PresenceTests {
    @Suite("Processes")
    struct PresenceProcessTests {
        @Test("kill -9 of a node with a thousand clients: each object leaves once", arguments: [1, 2])
        func killed(nodes: Int) async throws {
            try await withNodes { redis, one, other, server in
                let watchers = [
                    try await Watcher.start(try one.bucket("room")), try await Watcher.start(try other.bucket("room")),
                ]
                // Two nodes serve the same clients: those that the second has taken over leave only with it.
                var children: [Child] = []
                for number in 1...nodes {
                    children.append(
                        try Child("services-worker", ["presence-serve", server.url, "room", "1000", "10000"]))
                    try await until("node \(number) serves") { try await redis.send("LLEN", "log").integer == number }
                }
                for watcher in watchers { try await watcher.until("all arrive") { $0.objects.count == 1000 } }
                for (number, child) in children.enumerated() {
                    try await child.kill9()
                    if number == nodes - 1 { break }
                    try await until("its session has ended") { try await sessions("room", redis) == nodes - 1 - number }
                    #expect(watchers.allSatisfy { $0.state.leaves == [] })
                }
                for watcher in watchers {
                    try await watcher.until("all leave") { $0.objects.isEmpty }
                    let state = watcher.state
                    #expect(state.leaves.count == 1000 && Set(state.leaves.map(\.key)).count == 1000)
                    #expect(state.leaves.allSatisfy { $0.reason == .processDied })
                    #expect(state.faults == [] && state.gaps == 0)
                }
                try await expectEmpty("room", redis)
            }
        }

        @Test("a node that was stopped past its session revives nothing, and is notified which connections it has lost")
        func stopped() async throws {
            try await withNodes { redis, one, _, server in
                let bucket = try one.bucket("room")
                let watcher = try await Watcher.start(bucket)
                let node = try Child("services-worker", ["presence-serve", server.url, "room", "1000", "10000"])
                try await until("it serves") { try await redis.send("LLEN", "log").integer == 1 }
                try await watcher.until("all arrive") { $0.objects.count == 1000 }
                kill(node.processID, SIGSTOP)
                try await watcher.until("all leave") { $0.objects.isEmpty }
                kill(node.processID, SIGCONT)
                try await until("it has noticed") { try await redis.send("LLEN", "log").integer == 2 }
                #expect(try await redis.send("LINDEX", "log", -1).string == "expired 1000 1000")
                let alice = try await bucket.connect(user: "alice", client: "phone")
                try await bucket.put("last", "", owner: alice)
                try await watcher.until("a later change arrives") { $0.objects["last"] != nil }
                let state = watcher.state
                #expect(state.objects.count == 1)
                #expect(state.leaves.count == 1000 && Set(state.leaves.map(\.key)).count == 1000)
                #expect(state.faults == [])
                try await node.kill9()
            }
        }

        /// Nothing of the clients remains in Redis.
        private func expectEmpty(_ bucket: String, _ redis: RedisClient) async throws {
            try await until("the session is removed") { try await sessions(bucket, redis) == 0 }
            let key = "gs:{default:\(bucket)}:presence:"
            #expect(try await redis.send("ZCARD", .string(key + "index")).integer == 1)
            #expect(try await redis.send("ZCARD", .string(key + "due")).integer == 1)
            #expect(try await redis.send("HLEN", .string(key + "state")).integer == 1)
        }

        private func sessions(_ bucket: String, _ redis: RedisClient) async throws -> Int {
            let fields = try await redis.send("HKEYS", "gs:{default:\(bucket)}:presence:state").array ?? []
            return fields.filter { $0.bytes?.first == UInt8(ascii: "s") }.count
        }
    }
}
