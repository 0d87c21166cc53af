import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import GameServices
@testable import GameServicesTestSupport

/// A hazard, the text of a script that prevents it, and a scenario that fails without that text.
struct PresenceHazard: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var guardian: String
    var without: String
    /// Returns whether the promise holds.
    var scenario: @Sendable (_ one: Presence, _ other: Presence, RedisClient) async throws -> Bool
}

/// A Redis with other scripts.
private struct MutatedRedis: RedisDecorator {
    let redis: RedisClient
    let hazard: PresenceHazard

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        let source = script.source.replacingOccurrences(of: hazard.guardian, with: hazard.without)
        return try await redis.script(RedisScript(source), keys: keys, arguments: arguments, timeout: timeout)
    }
}

extension PresenceTests {
    @Suite("Each safeguard of the scripts", .serialized)
    struct PresenceMutationTests {
        @Test("prevents its hazard, and nothing else does", arguments: hazards)
        func hazard(_ hazard: PresenceHazard) async throws {
            let scripts = [PresenceScripts.apply, PresenceScripts.sweep, PresenceScripts.read]
            try #require(scripts.contains { $0.source.contains(hazard.guardian) })
            for isMutated in [false, true] {
                var configuration = PresenceConfiguration()
                // Nothing happens by itself.
                configuration.ttl = .seconds(3600)
                try await withLocalRedis { server in
                    try await withRedisClient(url: server.url) { redis in
                        let mutated = MutatedRedis(redis: redis, hazard: hazard)
                        let used: any Redis = isMutated ? mutated : redis
                        try await withPresence(redis: used, configuration: configuration) { one in
                            try await withPresence(redis: used, configuration: configuration) { other in
                                let holds = try await hazard.scenario(one, other, redis)
                                #expect(holds != isMutated, "\(isMutated ? "without" : "with") the safeguard")
                            }
                        }
                    }
                }
            }
        }
    }
}

private func key(_ part: String, of bucket: String = "room") -> RedisArgument {
    "gs:{default:\(bucket)}:presence:\(part)"
}

/// Copies all keys of a bucket over those of another one.
private func copy(_ redis: RedisClient, _ bucket: String, to other: String) async throws {
    for part in ["state", "index", "due", "log"] {
        _ = try await redis.send("COPY", key(part, of: bucket), key(part, of: other), "REPLACE")
    }
}

/// Lets a session expire.
private func expire(_ owner: PresenceOwner, _ redis: RedisClient) async throws {
    _ = try await redis.send("ZADD", key("due"), 1, .string("s" + owner.session))
}

private func keys(_ bucket: PresenceBucket) async throws -> [String] { try await bucket.snapshot().objects.map(\.key) }

private let hazards: [PresenceHazard] = [
    PresenceHazard(
        testDescription: "a batch that Redis has lost is missed, and repeated",
        guardian: "if session_last_batch < batch_number - 1 then", without: "if false then"
    ) { one, _, redis in
        let bucket = try one.bucket("room")
        let alice = try await bucket.connect(user: "alice", client: "phone")
        try await copy(redis, "room", to: "saved")
        try await bucket.put("lost", "", owner: alice)
        try await copy(redis, "saved", to: "room")
        try await bucket.put("next", "", owner: alice)
        return try await keys(bucket).sorted() == ["lost", "next"]
    },
    PresenceHazard(
        testDescription: "a repeated batch has one effect",
        guardian: "if session_last_batch == batch_number then", without: "if false then"
    ) { one, _, redis in
        let bucket = try one.bucket("room")
        let alice = try await bucket.connect(user: "alice", client: "phone")
        // The first batch connected the client, so this is the second one.
        var header = Array(alice.session.utf8)
        header.append(number: 2)
        let put = PresenceOperation.put(
            alice, key: "a", value: [], scope: .client, graceMilliseconds: 0, onlyNew: false)
        let limits = await (try one.core(bucket)).logLimits
        for _ in 0..<2 {
            _ = try await one.redis.script(
                PresenceScripts.apply, keys: bucket.keys.all,
                arguments: [
                    "", .bytes(Array("12345678".utf8)), .bytes(limits), .bytes(header), .bytes(put.encoded),
                ])
        }
        return try await bucket.snapshot().position.version == 1
    },
    PresenceHazard(
        testDescription: "a session that has expired is refused before it is swept",
        guardian: " and (tonumber(call('ZSCORE', bucket_due, session_field)) or 0) > now", without: ""
    ) { one, _, redis in
        let bucket = try one.bucket("room")
        let alice = try await bucket.connect(user: "alice", client: "phone")
        // The first tick would sweep the session.
        let core = try one.core(bucket)
        try await until("the first tick is over") { await core.sleeper != nil }
        try await expire(alice, redis)
        return await code { try await bucket.put("a", "", owner: alice) } == .lost
    },
    PresenceHazard(
        testDescription: "the end of an old connection is not that of the new one",
        guardian: "client_session == batch_session and client_token == connection_token and client_gone == -1",
        without: "client_session == batch_session"
    ) { one, _, _ in
        let bucket = try one.bucket("room")
        let before = try await bucket.connect(user: "alice", client: "phone")
        let after = try await bucket.connect(user: "alice", client: "phone")
        try await bucket.put("a", "", owner: after)
        return try await bucket.disconnect(before) == false
    },
    PresenceHazard(
        testDescription: "a key belongs to its user",
        guardian: "match(object_owner, '^.(%Z*)') ~= connection_user", without: "false"
    ) { one, _, _ in
        let bucket = try one.bucket("room")
        try await bucket.put("a", "", owner: try await bucket.connect(user: "alice", client: "phone"))
        let bob = try await bucket.connect(user: "bob", client: "phone")
        return await code { try await bucket.put("a", "", owner: bob) } == .taken
    },
    PresenceHazard(
        testDescription: "a position that Redis has lost is not followed",
        guardian: "if string.sub(at_position, 1, 8) ~= position_tag then", without: "if false then"
    ) { one, _, _ in
        let bucket = try one.bucket("room")
        try await bucket.put("a", "", owner: try await bucket.connect(user: "alice", client: "phone"))
        var position = try await bucket.snapshot().position
        position.tag ^= 1
        if case .gap = try await bucket.reader.changes(after: position) { return true }
        return false
    },
    PresenceHazard(
        testDescription: "each object has a grace period of its own",
        guardian: "gone + object_grace > now or ", without: ""
    ) { one, _, _ in
        let bucket = try one.bucket("room")
        let alice = try await bucket.connect(user: "alice", client: "phone")
        try await bucket.put("brief", "", owner: alice)
        try await bucket.put("long", "", owner: alice, grace: .seconds(600))
        try await bucket.disconnect(alice)
        try await until("an object leaves") { try await keys(bucket).count < 2 }
        return try await keys(bucket) == ["long"]
    },
    PresenceHazard(
        testDescription: "objects of a user stay while a client of the user is connected",
        guardian: "if #others == 0 then", without: "if true then"
    ) { one, other, _ in
        let bucket = try one.bucket("room")
        let phone = try await bucket.connect(user: "alice", client: "phone")
        _ = try await other.bucket("room").connect(user: "alice", client: "pad")
        try await bucket.put("client", "", owner: phone)
        try await bucket.put("user", "", owner: phone, scope: .user)
        try await bucket.disconnect(phone)
        try await until("the client's object leaves") { try await !keys(bucket).contains("client") }
        return try await keys(bucket) == ["user"]
    },
    PresenceHazard(
        testDescription: "a client that has moved does not leave with the session before",
        guardian: "call('ZREM', bucket_index, 's' .. client_session .. '\\0' .. owner)", without: ""
    ) { one, other, redis in
        let (bucket, second) = (try one.bucket("room"), try other.bucket("room"))
        let before = try await bucket.connect(user: "alice", client: "phone")
        try await bucket.put("a", "", owner: before)
        _ = try await second.connect(user: "alice", client: "phone")
        try await expire(before, redis)
        try await other.core(second).tick()
        return try await keys(bucket) == ["a"]
    },
]
