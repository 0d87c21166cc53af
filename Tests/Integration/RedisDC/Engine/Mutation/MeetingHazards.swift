// Facts of barriers and exchangers: meetings.lua and meeting_grant.lua.
import Hiredis
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension Hazard {
    static let meetings: [Hazard] = [
        Hazard(
            testDescription: "dead waiters do not open a barrier",
            safeguard: "if session.expires > 0 then", replacement: "if true then"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            try await dying.arrive(1, parties: "2")
            try await dying.expire()
            try await living.arrive(1, parties: "2")
            return try await resource(redis)?.signalled == 0
        },
        Hazard(
            testDescription: "a barrier that a death breaks does not open when enough others arrive before the sweep",
            safeguard: "if #dead > 0 and resource_kind == 'bb' then", replacement: "if false then"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            try await dying.arrive(1, "bb", parties: "2")
            try await dying.expire()
            try await living.arrive(2, "bb", parties: "2")
            return try await resource(redis)?.signalled == 0
        },
        Hazard(
            testDescription: "a party that passed a barrier cannot leave it afterwards",
            safeguard: "elseif only_waiting then", replacement: "elseif false then"
        ) { nodes, _ in
            let node = try await nodes()
            try await node.arrive(2, parties: "2")
            return try await node.request("releaseParty", "s", ["w"], claim: 1).count == 2
        },
        Hazard(
            testDescription: "an open generation of a barrier takes no later arrivals",
            safeguard: "round_tick_at + 7) > resource_tail then break end",
            replacement: "round_tick_at + 7) == '' then break end"
        ) { nodes, redis in
            let node = try await nodes()
            // One script grants 128. A party whose line is gone cannot be granted, and its place stays empty.
            try await node.arrive(130, parties: "130")
            let lines = try await Audit(redis).lines.filter { $0[0] == UInt8(ascii: "q") }
            _ = try await redis.send("ZREM", "rdc:{default:0}:index", .bytes(try #require(lines.first)))
            try await node.arrive(1, parties: "130")
            return try await node.claim(131, redis)?.state == "w"
        },
        Hazard(
            testDescription: "a party of an open generation that is not granted yet cannot leave",
            safeguard: "if only_waiting then return {'again'} end", replacement: ""
        ) { nodes, _ in
            let node = try await nodes()
            try await node.arrive(130, parties: "130")
            return try await node.request("releaseParty", "s", ["w"], claim: 130) == ["again"]
        },
        Hazard(
            testDescription: "a party that arrived after an open generation can leave",
            safeguard: "queue_tick <= resource_tail and ", replacement: ""
        ) { nodes, _ in
            let node = try await nodes()
            try await node.arrive(301, parties: "300")
            return try await node.request("releaseParty", "s", ["w"], claim: 301).first != "again"
        },
        Hazard(
            testDescription: "a party that dies after its generation opened does not break the barrier",
            safeguard: "and not has_passed then", replacement: "then"
        ) { nodes, redis in
            let node = try await nodes()
            try await node.arrive(130, "bb", parties: "130")
            _ = try await node.request("releaseParty", "s", claim: 130)
            return try await node.claim(129, redis)?.state == "g"
        },
        Hazard(
            testDescription: "a meeting is kept until all parties have read it",
            safeguard: "if unread > 1 then", replacement: "if false then"
        ) { nodes, redis in
            let node = try await nodes()
            for value in ["x", "y"] { _ = try await node.request("arrive", "s", ["eo", "2", "e", .string(value)]) }
            _ = try await node.request("releaseParty", "s", claim: 1)
            return try await Audit(redis).meetings.count == 1
        },
    ]
}

extension ForeignNode {
    /// Sends as many arrivals at a barrier for `parties`.
    fileprivate func arrive(_ count: Int, _ policy: String = "bo", parties: RedisArgument) async throws {
        for _ in 0..<count { _ = try await request("arrive", "s", [.string(policy), parties, "a"]) }
    }
}
