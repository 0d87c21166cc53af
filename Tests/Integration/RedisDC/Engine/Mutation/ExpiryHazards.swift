// Facts of the expiry of sessions: a script that acts on it makes it final.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    private static let inGrants =
        "if session.expires > 0 and session.expires <= clock_now then session.expires, session.is_changed = 0, true end"

    static let expiries: [Hazard] = [
        Hazard(
            testDescription: "a session whose waiter was passed over as expired has expired for every script",
            safeguard: inGrants, replacement: ""
        ) { nodes, redis in
            try await isFinal(nodes, redis) { victim, other in
                _ = try await victim.request("acquire", "s", ["sf", "0", "c"])
                try await victim.setExpiry(1)
                try await other.signal("s")
                return try await resource(redis)?.waiting == 0
            }
        },
        Hazard(
            testDescription:
                "a session whose waiter was passed over for a group as expired has expired for every script",
            safeguard: inGrants, replacement: ""
        ) { nodes, redis in
            try await isFinal(nodes, redis) { victim, other in
                let claim = try await other.number { _ = try await other.request("acquireInGroup", "s", member("g")) }
                _ = try await victim.request("acquireInGroup", "s", member("h"))
                try await victim.setExpiry(1)
                _ = try await other.request("releaseInGroup", "s", claim: claim)
                return try await resource(redis)?.waiting ?? 0 == 0
            }
        },
        Hazard(
            testDescription: "a session whose party was removed from a barrier as expired has expired for every script",
            safeguard: inGrants, replacement: ""
        ) { nodes, redis in
            try await isFinal(nodes, redis) { victim, other in
                _ = try await victim.request("arrive", "s", ["bo", "2", "a"])
                try await victim.setExpiry(1)
                _ = try await other.request("arrive", "s", ["bo", "2", "a"])
                return try await resource(redis)?.waiting == 1
            }
        },
        Hazard(
            testDescription: "a session whose party has broken a barrier as expired has expired for every script",
            safeguard: inGrants, replacement: ""
        ) { nodes, redis in
            try await isFinal(nodes, redis) { victim, other in
                _ = try await victim.request("arrive", "s", ["bb", "2", "a"])
                try await victim.setExpiry(1)
                _ = try await other.request("arrive", "s", ["bb", "2", "a"])
                return try await resource(redis)?.kind == "z"
            }
        },
        Hazard(
            testDescription: "a session whose sweep has begun has expired for every script",
            safeguard: "local has_ended = session_expires == 0 session_expires = 0",
            replacement: "local has_ended = true"
        ) { nodes, redis in
            try await isFinal(nodes, redis) { victim, other in
                _ = try await victim.request("acquire", "s", ["sf", "1", "l"])
                try await victim.setExpiry(1)
                return try await other.run("sweep", [.string(victim.session), ""]).first == "ok"
            }
        },
        Hazard(
            testDescription: "a session whose heartbeat came too late has expired for every script",
            safeguard: "session_expires = 0 call('HSET', partition_state, 's:' .. sid",
            replacement: "call('HSET', partition_state, 's:' .. sid"
        ) { nodes, redis in
            try await isFinal(nodes, redis) { victim, _ in
                try await victim.setExpiry(1)
                return try await victim.run("heartbeat", [.string(victim.session), 60_000_000, ""])
                    == ["lost", "ended"]
            }
        },
        Hazard(
            testDescription:
                "a session whose request was refused as that of an expired one has expired for every script",
            safeguard: "session_expires = 0 call('HSET', partition_state, slot_session_field",
            replacement: "call('HSET', partition_state, slot_session_field"
        ) { nodes, redis in
            try await isFinal(nodes, redis) { victim, _ in
                try await victim.setExpiry(1)
                return try await victim.request("acquire", "s", ["sf", "1", "l"]) == ["lost", "ended"]
            }
        },
        Hazard(
            testDescription: "a claim is not set aside before a sweep has ended its session",
            safeguard: "if stored_session and #stored_session == 24 and ", replacement: "if false and "
        ) { nodes, redis in
            let (one, two) = (try await nodes(), try await nodes())
            _ = try await one.request("acquire", "s", ["sf", "1", "l"])
            try await one.setExpiry(1)
            return try await two.run("setAside", [.string(one.session), 0, 1]) == ["alive"]
        },
        Hazard(
            testDescription: "the list of claims says that the session has expired",
            safeguard: "if session_expires == 0 then return {'lost', 'ended'} end", replacement: ""
        ) { nodes, redis in
            let node = try await nodes()
            try await node.expire()
            return try await node.run("claims", [.string(node.session), 0]) == ["lost", "ended"]
        },
    ]

    /// Whether a session is refused when a clock that was ahead is right again.
    ///
    /// - Parameter act: runs a script that finds the session expired, and returns whether it acted on that.
    private static func isFinal(
        _ nodes: Nodes, _ redis: RedisClient,
        _ act: (_ victim: ForeignNode, _ other: ForeignNode) async throws -> Bool
    ) async throws -> Bool {
        let (victim, other) = (try await nodes(), try await nodes())
        guard try await act(victim, other) else { return false }
        let record = try await redis.send("HGET", "rdc:{default:0}:book", .string("s:\(victim.session)")).bytes
        return record?.prefix(8).allSatisfy { $0 == 0 } ?? false
    }
}
