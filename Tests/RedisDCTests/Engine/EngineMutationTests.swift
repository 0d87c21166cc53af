import Foundation
import Hiredis
import RedisDC
import TestSupport
import Testing

/// A hazard, the text in the scripts that keeps it away, and what happens without it.
struct Hazard: Sendable, CustomTestStringConvertible {
    typealias Nodes = @Sendable (_ ttl: Duration) async throws -> ForeignNode

    var testDescription: String
    var guardian: String
    var without: String
    /// Whether the promise holds.
    var scenario: @Sendable (Nodes, RedisClient) async throws -> Bool
}

extension EngineTests {
    @Suite("Each safeguard of the scripts")
    struct MutationTests {
        @Test("does what it is there for, and nothing else does", arguments: hazards)
        func hazard(_ hazard: Hazard) async throws {
            for isMutated in [false, true] {
                try await withServer { _, redis, _ in
                    var found = false
                    for name in ["head", "resource", "tail", "acquire", "release", "signal", "count", "pass", "read"] {
                        found = try ForeignNode.source(name).contains(hazard.guardian) || found
                    }
                    try #require(found, "the scripts do not contain \(hazard.guardian)")
                    let holds = try await hazard.scenario(
                        { ttl in
                            try await ForeignNode(redis, ttl: ttl) { source in
                                guard isMutated else { return source }
                                return source.replacingOccurrences(of: hazard.guardian, with: hazard.without)
                            }
                        }, redis)
                    #expect(holds != isMutated)
                }
            }
        }
    }
}

private let long = Duration.seconds(60)

private func resource(_ redis: RedisClient) async throws -> Audit.Resource? { try await Audit(redis).resources["s"] }

private func untilDead(_ node: ForeignNode, _ redis: RedisClient) async throws {
    // By the server's clock, which decides.
    try await until("the session has ended") {
        let score = try await redis.send("ZSCORE", "rdc:{default:0}:sessions", .string(node.session)).string
        let time = try await redis.send("TIME").array?.compactMap(\.integer) ?? []
        return Double(score ?? "0")! < Double(time[0]) * 1_000_000 + Double(time[1])
    }
}

private func member(_ group: RedisArgument) -> [RedisArgument] { ["m", "1", "f", 1, "t", "0", "1", group] }

private func put(_ item: RedisArgument, _ node: ForeignNode) async throws {
    let place = try await node.begun { _ = try await node.request("acquire", "s", ["k", "5", "f", 1, "l", "0"]) }
    _ = try await node.request("pass", "s#items", ["i", "0", "f", .integer(place), "s", item])
}

extension ForeignNode {
    /// The number of the claim that has an item.
    fileprivate func taken() async throws -> Int {
        let claim = try await begun { _ = try await request("acquire", "s#items", ["i", "0", "f", 1, "l", "0"]) }
        _ = try await request("read", "s#items", [.integer(claim)])
        return claim
    }
}

private let hazards: [Hazard] = [
    Hazard(
        testDescription: "a resize that is sent twice does not undo what another one did in between",
        guardian: "local previous = stored[3]", without: "local previous = nil"
    ) { nodes, redis in
        let (node, other) = (try await nodes(long), try await nodes(long))
        try await node.signal("s")
        _ = try await node.request("resize", "s", ["s", "", "f", 1], number: 7)
        _ = try await other.request("resize", "s", ["s", "", "f", 9])
        _ = try await node.request("resize", "s", ["s", "", "f", 1], number: 7)
        return try await resource(redis)?.limit == 9
    },
    Hazard(
        testDescription: "a signal that is sent twice signals once", guardian: "local previous = stored[3]",
        without: "local previous = nil"
    ) { nodes, redis in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("signal", "s", ["s", "0", "f", 1], number: 1) }
        return try await resource(redis)?.free == 1
    },
    Hazard(
        testDescription: "an acquire that is sent twice takes once", guardian: "local previous = stored[3]",
        without: "local previous = nil"
    ) { nodes, redis in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("acquire", "s", ["s", "5", "f", 1, "c", "0"], number: 1) }
        return try await resource(redis)?.free == 4
    },
    Hazard(
        testDescription: "nobody overtakes who waits for more", guardian: "(waiting == 0 or policy == OVERTAKING)",
        without: "true"
    ) { nodes, _ in
        let (one, two) = (try await nodes(long), try await nodes(long))
        _ = try await one.request("acquire", "s", ["s", "1", "f", 2, "c", "0"])
        return try await two.request("acquire", "s", ["s", "1", "f", 1, "c", "1"]) == ["none"]
    },
    Hazard(
        testDescription: "a dead waiter is passed over", guardian: "claim_state ~= WAITING or not is_alive",
        without: "claim_state ~= WAITING"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(400)), try await nodes(long))
        _ = try await dying.request("acquire", "s", ["s", "0", "f", 1, "l", "0"])
        _ = try await living.request("acquire", "s", ["s", "0", "f", 1, "l", "0"])
        try await untilDead(dying, redis)
        _ = try await living.request("signal", "s", ["s", "0", "f", 1])
        return try await Audit(redis).claims["\(living.session):1"]?.state == "h"
    },
    Hazard(
        testDescription: "a request that comes after its cancel takes nothing",
        guardian: "if owner == sid and claim_number > settled then", without: "if false then"
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("release", "s", ["1", "", "0"], number: 2)
        return try await node.request("acquire", "s", ["s", "1", "f", 1, "l", "0"], number: 1) == ["over"]
    },
    Hazard(
        testDescription: "what a dead session took and did not confirm goes back",
        guardian: "          free = free + count\n        end", without: "        end"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(400)), try await nodes(long))
        _ = try await dying.request("acquire", "s", ["s", "1", "f", 1, "c", "0"])
        try await untilDead(dying, redis)
        _ = try await living.request("release", "s", ["1", .string(dying.session), "0"])
        return try await resource(redis)?.free == 1
    },
    Hazard(
        testDescription: "what was confirmed does not go back", guardian: "if claim_state == GRANTED then",
        without: "if false then"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.seconds(1)), try await nodes(long))
        _ = try await dying.request("acquire", "s", ["s", "1", "f", 1, "c", "0"])
        _ = try await dying.request("give", "s", confirming: 1)
        try await untilDead(dying, redis)
        _ = try await living.request("release", "s", ["1", .string(dying.session), "0"])
        return try await resource(redis)?.free == 0
    },
    Hazard(
        testDescription: "fences grow", guardian: "tick = math.max(tick + 1, now)", without: "tick = tick"
    ) { nodes, _ in
        let node = try await nodes(long)
        let first = try await node.request("acquire", "s", ["s", "2", "f", 1, "l", "0"])
        let second = try await node.request("acquire", "s", ["s", "2", "f", 1, "l", "0"])
        return UInt64(first[1])! < UInt64(second[1])!
    },
    Hazard(
        testDescription: "what was held of a destroyed semaphore does not come to its namesake",
        guardian: "claim_tick > created", without: "true"
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", ["s", "1", "f", 1, "l", "0"])
        _ = try await node.request("destroy", "s", ["s"])
        _ = try await node.request("create", "s", ["s", "1", "f"])
        _ = try await node.request("release", "s", ["1", "", "0"])
        return try await resource(redis)?.free == 1
    },
    Hazard(
        testDescription: "a request that was settled long ago is refused",
        guardian: "if request <= settled then return {'stale'} end", without: ""
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("signal", "s", ["s", "0", "f", 1])
        _ = try await node.request("give", "s", settled: 1)
        _ = try await node.request("signal", "s", ["s", "0", "f", 1], number: 1)
        return try await resource(redis)?.free == 1
    },
    Hazard(
        testDescription: "nobody ends the claim of a living session", guardian: "owner_expires > now and condition ~= BY_FORCE",
        without: "false"
    ) { nodes, redis in
        let (one, two) = (try await nodes(long), try await nodes(long))
        _ = try await one.request("acquire", "s", ["s", "1", "f", 1, "l", "0"])
        _ = try? await two.request("release", "s", ["1", .string(one.session), "0"])
        return try await resource(redis)?.free == 0
    },
    Hazard(
        testDescription: "a session that has ended is refused",
        guardian: "if expires <= now then return {'lost', 'ended'} end",
        without: ""
    ) { nodes, redis in
        let node = try await nodes(.milliseconds(400))
        try await untilDead(node, redis)
        return try await node.request("acquire", "s", ["s", "1", "f", 1, "l", "0"]).first == "lost"
    },
    Hazard(
        testDescription: "another number of permits is a conflict",
        guardian: "if policy ~= requested_policy or (permits ~= wanted and limit ~= wanted) then", without: "if false then"
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("create", "s", ["s", "3", "f"])
        return try await node.request("create", "s", ["s", "4", "f"]).first == "conflict"
    },
    Hazard(
        testDescription: "a condition keeps no notify for those who come later",
        guardian: "if kind == CONDITION and free > waiting then", without: "if false then"
    ) { nodes, _ in
        let node = try await nodes(long)
        // More than one script wakes: those who are left are woken by the next.
        for _ in 0..<130 { _ = try await node.request("acquire", "s", ["c", "0", "f", 1, "c", "0"]) }
        _ = try await node.request("signal", "s", ["c", "0", "f", 1000])
        let late = try await node.request("acquire", "s", ["c", "0", "f", 1, "c", "0"], number: 132)
        _ = try await node.request("give", "s", number: 133)
        let again = try await node.request("acquire", "s", ["c", "0", "f", 1, "c", "0"], number: 132)
        return late == ["queued"] && again == ["queued"]
    },
    Hazard(
        testDescription: "a condition that nobody waits for is not there",
        guardian: "(kind == DESTROYED or kind == CONDITION", without: "(kind == DESTROYED"
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("signal", "s", ["c", "0", "f", 1])
        return try await resource(redis) == nil
    },
    Hazard(
        testDescription: "who is preferred passes those who wait, but not those who are preferred too",
        guardian: "passes = #call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1') == 0", without: "passes = true"
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", ["s", "3", "f", 2, "l", "0"])
        _ = try await node.request("acquire", "s", ["s", "3", "f", 2, "l", "0", "0"])
        return try await node.request("acquire", "s", ["s", "3", "f", 1, "l", "1", "0"]) == ["none"]
    },
    Hazard(
        testDescription: "a barrier does not open for the dead",
        guardian: "owner == sid or session and decode(NUMBER, session) > now", without: "true"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(400)), try await nodes(long))
        _ = try await dying.request("arrive", "s", ["b", "2", "o"])
        try await untilDead(dying, redis)
        _ = try await living.request("arrive", "s", ["b", "2", "o"])
        return try await resource(redis)?.signalled == 0
    },
    Hazard(
        testDescription: "an id counts a latch down once", guardian: "if id == '' or", without: "if true or"
    ) { nodes, _ in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("count", "s", ["l", "2", "d", "me"]) }
        return try await node.request("acquire", "s", ["l", "2", "d", 1, "c", "1"]) == ["none"]
    },
    Hazard(
        testDescription: "counting down that is sent twice counts once", guardian: "local previous = stored[3]",
        without: "local previous = nil"
    ) { nodes, redis in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("count", "s", ["l", "3", "d", ""], number: 1) }
        return try await resource(redis)?.signalled == 1
    },
    Hazard(
        testDescription: "an answer that is given again is the same", guardian: "string.sub(previous, 2)",
        without: "format('%.0f', limit - signalled)"
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("count", "s", ["l", "2", "d", ""], number: 1)
        _ = try await node.request("count", "s", ["l", "2", "d", ""], number: 2)
        return try await node.request("count", "s", ["l", "2", "d", ""], number: 1) == ["ok", "1"]
    },
    Hazard(
        testDescription: "the death of a participant breaks a latch that was made so",
        guardian: "if owner ~= sid and policy == BREAKS_LATCH then", without: "if false then"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(400)), try await nodes(long))
        _ = try await dying.request("register", "s", ["l", "1", "f"])
        try await untilDead(dying, redis)
        _ = try await living.request("release", "s", ["1", .string(dying.session), "0"])
        return try await living.request("acquire", "s", ["l", "1", "f", 1, "c", "1"]) == ["broken"]
    },
    Hazard(
        testDescription: "the waiters of a group come in with its first",
        guardian: "if members[note] == 1 then entering_group = string.sub(note, 2) end", without: ""
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", ["m", "1", "f", 1, "l", "0"])
        _ = try await node.request("acquire", "s", member("g"))
        _ = try await node.request("acquire", "s", ["m", "1", "f", 1, "l", "0"])
        _ = try await node.request("acquire", "s", member("g"))
        _ = try await node.request("release", "s", ["1", "", "0"])
        return try await Audit(redis).claims["\(node.session):4"]?.state == "h"
    },
    Hazard(
        testDescription: "who comes while its group is in comes in",
        guardian: "passes = members > 0 or free >= wanted and waiting == 0", without: "passes = free >= wanted and waiting == 0"
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", member("g"))
        return try await node.request("acquire", "s", member("g")).first == "granted"
    },
    Hazard(
        testDescription: "a group is in until its last one goes out", guardian: "if group_created < claim_tick and members > 1 then",
        without: "if false then"
    ) { nodes, _ in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("acquire", "s", member("g")) }
        _ = try await node.request("release", "s", ["1", "", "0"])
        return try await node.request("acquire", "s", ["m", "1", "f", 1, "l", "1"]) == ["none"]
    },
    Hazard(
        testDescription: "the last one of a group that goes out gives its permit back",
        guardian: "if is_current then count = 1 end", without: ""
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", member("g"))
        _ = try await node.request("release", "s", ["1", "", "0"])
        return try await node.request("acquire", "s", ["m", "1", "f", 1, "l", "1"]).first == "granted"
    },
    Hazard(
        testDescription: "a group that is in what was destroyed is not in its namesake",
        guardian: "if group_created == created then members = count end", without: "members = count"
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", member("g"))
        _ = try await node.request("destroy", "s", ["m"])
        _ = try await node.request("acquire", "s", ["m", "1", "f", 1, "l", "0"])
        return try await node.request("acquire", "s", member("g")) == ["queued"]
    },
    Hazard(
        testDescription: "an item that is given back is there again", guardian: "if is_current and kind == ITEMS then",
        without: "if false then"
    ) { nodes, redis in
        let node = try await nodes(long)
        try await put("x", node)
        let claim = try await node.taken()
        _ = try await node.request("release", "s#items", [.integer(claim), "", "0"])
        return try await Audit(redis).items.count == 1
    },
    Hazard(
        testDescription: "two do not get the same item", guardian: "zrem[#zrem + 1] = line\n      hset",
        without: "hset"
    ) { nodes, redis in
        let node = try await nodes(long)
        for item in ["x", "y"] as [RedisArgument] { try await put(item, node) }
        let (one, two) = (try await node.taken(), try await node.taken())
        let claims = try await Audit(redis).claims
        return claims["\(node.session):\(one)"]?.note != claims["\(node.session):\(two)"]?.note
    },
    Hazard(
        testDescription: "what is not held is not passed on", guardian: "claim_state ~= HELD or not item and mode ~= ITEM or",
        without: "false and"
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", ["k", "1", "f", 1, "l", "0"])
        _ = try await node.request("acquire", "s", ["k", "1", "f", 1, "l", "0"])
        let reply = try? await node.request("pass", "s#items", ["i", "0", "f", "2", "s", "x"])
        return reply == ["none"]
    },
    Hazard(
        testDescription: "what was brought to a meeting is kept until all have fetched it",
        guardian: "if unread > 1 then", without: "if false then"
    ) { nodes, redis in
        let node = try await nodes(long)
        for value in ["x", "y"] { _ = try await node.request("arrive", "s", ["e", "2", "o", .string(value)]) }
        _ = try await node.request("release", "s", ["1", "", "0"])
        return try await Audit(redis).meetings.count == 1
    },
    Hazard(
        testDescription: "who has passed a barrier cannot have left before", guardian: "if condition == IF_WAITING and (",
        without: "if false and ("
    ) { nodes, _ in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("arrive", "s", ["b", "2", "o"]) }
        return try await node.request("release", "s", ["1", "", "w"]).first == "granted"
    },
]
