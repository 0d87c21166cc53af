import Foundation
import Hiredis
import RedisDC
import TestSupport
import Testing

/// A line of the scripts that prevents a fault, what replaces it, and a scenario that fails without
/// it.
struct Hazard: Sendable, CustomTestStringConvertible {
    typealias Nodes = @Sendable (_ ttl: Duration) async throws -> ForeignNode

    var testDescription: String
    /// The text in the scripts that prevents the fault.
    var safeguard: String
    /// The text that replaces it.
    var replacement: String
    /// Returns whether the fact in `testDescription` holds.
    var scenario: @Sendable (Nodes, RedisClient) async throws -> Bool
}

extension EngineTests {
    @Suite("Safeguards of the scripts")
    struct MutationTests {
        @Test("a fact holds with its safeguard and fails without it", arguments: hazards)
        func safeguard(_ hazard: Hazard) async throws {
            for isMutated in [false, true] {
                try await withServer { _, redis, _ in
                    var found = false
                    for name in ["head", "resource", "tail", "acquire", "release", "signal", "count", "pass", "read"] {
                        found = try ForeignNode.source(name).contains(hazard.safeguard) || found
                    }
                    try #require(found, "the scripts do not contain \(hazard.safeguard)")
                    let holds = try await hazard.scenario(
                        { ttl in
                            try await ForeignNode(redis, ttl: ttl) { source in
                                guard isMutated else { return source }
                                return source.replacingOccurrences(of: hazard.safeguard, with: hazard.replacement)
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
    // By the server's clock, which decides when a session expires.
    try await until("the session has expired") {
        let score = try await redis.send("ZSCORE", "rdc:{default:0}:sessions", .string(node.session)).string
        let time = try await redis.send("TIME").array?.compactMap(\.integer) ?? []
        return Double(score ?? "0")! < Double(time[0]) * 1_000_000 + Double(time[1])
    }
}

private func member(_ group: RedisArgument) -> [RedisArgument] { ["m", "1", "f", 1, "t", "0", "1", group] }

private func put(_ item: RedisArgument, _ node: ForeignNode) async throws {
    let place = try await node.number { _ = try await node.request("acquire", "s", ["k", "5", "f", 1, "l", "0"]) }
    _ = try await node.request("pass", "s#items", ["i", "0", "f", .integer(place), "s", item])
}

extension ForeignNode {
    /// Takes an item, and returns the number of the claim.
    fileprivate func takeItem() async throws -> Int {
        let claim = try await number { _ = try await request("acquire", "s#items", ["i", "0", "f", 1, "l", "0"]) }
        _ = try await request("read", "s#items", [.integer(claim)])
        return claim
    }
}

private let hazards: [Hazard] = [
    Hazard(
        testDescription: "a repeated resize does not undo another one in between",
        safeguard: "local previous = stored[3]", replacement: "local previous = nil"
    ) { nodes, redis in
        let (node, other) = (try await nodes(long), try await nodes(long))
        try await node.signal("s")
        _ = try await node.request("resize", "s", ["s", "", "f", 1], number: 7)
        _ = try await other.request("resize", "s", ["s", "", "f", 9])
        _ = try await node.request("resize", "s", ["s", "", "f", 1], number: 7)
        return try await resource(redis)?.limit == 9
    },
    Hazard(
        testDescription: "a repeated signal adds its permits once", safeguard: "local previous = stored[3]",
        replacement: "local previous = nil"
    ) { nodes, redis in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("signal", "s", ["s", "0", "f", 1], number: 1) }
        return try await resource(redis)?.free == 1
    },
    Hazard(
        testDescription: "a repeated acquire takes its permits once", safeguard: "local previous = stored[3]",
        replacement: "local previous = nil"
    ) { nodes, redis in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("acquire", "s", ["s", "5", "f", 1, "c", "0"], number: 1) }
        return try await resource(redis)?.free == 4
    },
    Hazard(
        testDescription: "a request does not overtake a waiter for more permits",
        safeguard: "(waiting == 0 or policy == OVERTAKING)",
        replacement: "true"
    ) { nodes, _ in
        let (one, two) = (try await nodes(long), try await nodes(long))
        _ = try await one.request("acquire", "s", ["s", "1", "f", 2, "c", "0"])
        return try await two.request("acquire", "s", ["s", "1", "f", 1, "c", "1"]) == ["none"]
    },
    Hazard(
        testDescription: "a dead waiter is passed over", safeguard: "claim_state ~= WAITING or not is_alive",
        replacement: "claim_state ~= WAITING"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(400)), try await nodes(long))
        _ = try await dying.request("acquire", "s", ["s", "0", "f", 1, "l", "0"])
        _ = try await living.request("acquire", "s", ["s", "0", "f", 1, "l", "0"])
        try await untilDead(dying, redis)
        _ = try await living.request("signal", "s", ["s", "0", "f", 1])
        return try await Audit(redis).claims["\(living.session):1"]?.state == "h"
    },
    Hazard(
        testDescription: "a request that arrives after its cancel takes nothing",
        safeguard: "if owner == sid and claim_number > settled then", replacement: "if false then"
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("release", "s", ["1", "", "0"], number: 2)
        return try await node.request("acquire", "s", ["s", "1", "f", 1, "l", "0"], number: 1) == ["over"]
    },
    Hazard(
        testDescription: "an unconfirmed permit of a dead session is returned",
        safeguard: "          free = free + count\n        end", replacement: "        end"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(400)), try await nodes(long))
        _ = try await dying.request("acquire", "s", ["s", "1", "f", 1, "c", "0"])
        try await untilDead(dying, redis)
        _ = try await living.request("release", "s", ["1", .string(dying.session), "0"])
        return try await resource(redis)?.free == 1
    },
    Hazard(
        testDescription: "a confirmed permit of a dead session is not returned",
        safeguard: "if claim_state == GRANTED then",
        replacement: "if false then"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.seconds(1)), try await nodes(long))
        _ = try await dying.request("acquire", "s", ["s", "1", "f", 1, "c", "0"])
        _ = try await dying.request("give", "s", confirming: 1)
        try await untilDead(dying, redis)
        _ = try await living.request("release", "s", ["1", .string(dying.session), "0"])
        return try await resource(redis)?.free == 0
    },
    Hazard(
        testDescription: "fences grow", safeguard: "tick = math.max(tick + 1, now)", replacement: "tick = tick"
    ) { nodes, _ in
        let node = try await nodes(long)
        let first = try await node.request("acquire", "s", ["s", "2", "f", 1, "l", "0"])
        let second = try await node.request("acquire", "s", ["s", "2", "f", 1, "l", "0"])
        return UInt64(first[1])! < UInt64(second[1])!
    },
    Hazard(
        testDescription: "a lease of a destroyed semaphore adds no permit to a new one of the same name",
        safeguard: "claim_tick > created", replacement: "true"
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", ["s", "1", "f", 1, "l", "0"])
        _ = try await node.request("destroy", "s", ["s"])
        _ = try await node.request("create", "s", ["s", "1", "f"])
        _ = try await node.request("release", "s", ["1", "", "0"])
        return try await resource(redis)?.free == 1
    },
    Hazard(
        testDescription: "a request that was settled before is refused",
        safeguard: "if request <= settled then return {'stale'} end", replacement: ""
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("signal", "s", ["s", "0", "f", 1])
        _ = try await node.request("give", "s", settled: 1)
        _ = try await node.request("signal", "s", ["s", "0", "f", 1], number: 1)
        return try await resource(redis)?.free == 1
    },
    Hazard(
        testDescription: "another session cannot release the claim of a living session",
        safeguard: "owner_expires > now and condition ~= BY_FORCE",
        replacement: "false"
    ) { nodes, redis in
        let (one, two) = (try await nodes(long), try await nodes(long))
        _ = try await one.request("acquire", "s", ["s", "1", "f", 1, "l", "0"])
        _ = try? await two.request("release", "s", ["1", .string(one.session), "0"])
        return try await resource(redis)?.free == 0
    },
    Hazard(
        testDescription: "an expired session is refused",
        safeguard: "if expires <= now then return {'lost', 'ended'} end",
        replacement: ""
    ) { nodes, redis in
        let node = try await nodes(.milliseconds(400))
        try await untilDead(node, redis)
        return try await node.request("acquire", "s", ["s", "1", "f", 1, "l", "0"]).first == "lost"
    },
    Hazard(
        testDescription: "a different number of permits is a conflict",
        safeguard: "if policy ~= requested_policy or (permits ~= wanted and limit ~= wanted) then",
        replacement: "if false then"
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("create", "s", ["s", "3", "f"])
        return try await node.request("create", "s", ["s", "4", "f"]).first == "conflict"
    },
    Hazard(
        testDescription: "a condition keeps no notification for later waiters",
        safeguard: "if kind == CONDITION and free > waiting then", replacement: "if false then"
    ) { nodes, _ in
        let node = try await nodes(long)
        // More waiters than one script wakes: `give` wakes the others.
        for _ in 0..<130 { _ = try await node.request("acquire", "s", ["c", "0", "f", 1, "c", "0"]) }
        _ = try await node.request("signal", "s", ["c", "0", "f", 1000])
        let late = try await node.request("acquire", "s", ["c", "0", "f", 1, "c", "0"], number: 132)
        _ = try await node.request("give", "s", number: 133)
        let again = try await node.request("acquire", "s", ["c", "0", "f", 1, "c", "0"], number: 132)
        return late == ["queued"] && again == ["queued"]
    },
    Hazard(
        testDescription: "a condition without waiters does not exist",
        safeguard: "(kind == DESTROYED or kind == CONDITION", replacement: "(kind == DESTROYED"
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("signal", "s", ["c", "0", "f", 1])
        return try await resource(redis) == nil
    },
    Hazard(
        testDescription: "a preferred request overtakes waiters, but not preferred ones",
        safeguard: "passes = #call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1') == 0",
        replacement: "passes = true"
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", ["s", "3", "f", 2, "l", "0"])
        _ = try await node.request("acquire", "s", ["s", "3", "f", 2, "l", "0", "0"])
        return try await node.request("acquire", "s", ["s", "3", "f", 1, "l", "1", "0"]) == ["none"]
    },
    Hazard(
        testDescription: "dead waiters do not open a barrier",
        safeguard: "owner == sid or session and decode(NUMBER, session) > now", replacement: "true"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(400)), try await nodes(long))
        _ = try await dying.request("arrive", "s", ["b", "2", "o"])
        try await untilDead(dying, redis)
        _ = try await living.request("arrive", "s", ["b", "2", "o"])
        return try await resource(redis)?.signalled == 0
    },
    Hazard(
        testDescription: "an ID counts down a latch once", safeguard: "if id == '' or", replacement: "if true or"
    ) { nodes, _ in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("count", "s", ["l", "2", "d", "me"]) }
        return try await node.request("acquire", "s", ["l", "2", "d", 1, "c", "1"]) == ["none"]
    },
    Hazard(
        testDescription: "a repeated countdown counts once", safeguard: "local previous = stored[3]",
        replacement: "local previous = nil"
    ) { nodes, redis in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("count", "s", ["l", "3", "d", ""], number: 1) }
        return try await resource(redis)?.signalled == 1
    },
    Hazard(
        testDescription: "a repeated countdown gets the same answer", safeguard: "string.sub(previous, 2)",
        replacement: "format('%.0f', limit - signalled)"
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("count", "s", ["l", "2", "d", ""], number: 1)
        _ = try await node.request("count", "s", ["l", "2", "d", ""], number: 2)
        return try await node.request("count", "s", ["l", "2", "d", ""], number: 1) == ["ok", "1"]
    },
    Hazard(
        testDescription: "the death of a participant breaks a latch with that policy",
        safeguard: "if owner ~= sid and policy == BREAKS_LATCH then", replacement: "if false then"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(400)), try await nodes(long))
        _ = try await dying.request("register", "s", ["l", "1", "f"])
        try await untilDead(dying, redis)
        _ = try await living.request("release", "s", ["1", .string(dying.session), "0"])
        return try await living.request("acquire", "s", ["l", "1", "f", 1, "c", "1"]) == ["broken"]
    },
    Hazard(
        testDescription: "the waiters of a group enter with its first member",
        safeguard: "if members[note] == 1 then entering_group = string.sub(note, 2) end", replacement: ""
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
        testDescription: "a member enters while its group is inside",
        safeguard: "passes = members > 0 or free >= wanted and waiting == 0",
        replacement: "passes = free >= wanted and waiting == 0"
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", member("g"))
        return try await node.request("acquire", "s", member("g")).first == "granted"
    },
    Hazard(
        testDescription: "a group is inside until its last member leaves",
        safeguard: "if group_created < claim_tick and members > 1 then",
        replacement: "if false then"
    ) { nodes, _ in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("acquire", "s", member("g")) }
        _ = try await node.request("release", "s", ["1", "", "0"])
        return try await node.request("acquire", "s", ["m", "1", "f", 1, "l", "1"]) == ["none"]
    },
    Hazard(
        testDescription: "the last member of a group to leave returns its permit",
        safeguard: "if is_current then count = 1 end", replacement: ""
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", member("g"))
        _ = try await node.request("release", "s", ["1", "", "0"])
        return try await node.request("acquire", "s", ["m", "1", "f", 1, "l", "1"]).first == "granted"
    },
    Hazard(
        testDescription: "a group inside a destroyed resource is not inside a new one of the same name",
        safeguard: "if group_created == created then members = count end", replacement: "members = count"
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", member("g"))
        _ = try await node.request("destroy", "s", ["m"])
        _ = try await node.request("acquire", "s", ["m", "1", "f", 1, "l", "0"])
        return try await node.request("acquire", "s", member("g")) == ["queued"]
    },
    Hazard(
        testDescription: "a released item is available again", safeguard: "if is_current and kind == ITEMS then",
        replacement: "if false then"
    ) { nodes, redis in
        let node = try await nodes(long)
        try await put("x", node)
        let claim = try await node.takeItem()
        _ = try await node.request("release", "s#items", [.integer(claim), "", "0"])
        return try await Audit(redis).items.count == 1
    },
    Hazard(
        testDescription: "two claims do not get the same item", safeguard: "zrem[#zrem + 1] = line\n      hset",
        replacement: "hset"
    ) { nodes, redis in
        let node = try await nodes(long)
        for item in ["x", "y"] as [RedisArgument] { try await put(item, node) }
        let (one, two) = (try await node.takeItem(), try await node.takeItem())
        let claims = try await Audit(redis).claims
        return claims["\(node.session):\(one)"]?.note != claims["\(node.session):\(two)"]?.note
    },
    Hazard(
        testDescription: "a claim that is not held is not passed on",
        safeguard: "claim_state ~= HELD or not item and mode ~= ITEM or",
        replacement: "false and"
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", ["k", "1", "f", 1, "l", "0"])
        _ = try await node.request("acquire", "s", ["k", "1", "f", 1, "l", "0"])
        let reply = try? await node.request("pass", "s#items", ["i", "0", "f", "2", "s", "x"])
        return reply == ["none"]
    },
    Hazard(
        testDescription: "a meeting is kept until all parties have read it",
        safeguard: "if unread > 1 then", replacement: "if false then"
    ) { nodes, redis in
        let node = try await nodes(long)
        for value in ["x", "y"] { _ = try await node.request("arrive", "s", ["e", "2", "o", .string(value)]) }
        _ = try await node.request("release", "s", ["1", "", "0"])
        return try await Audit(redis).meetings.count == 1
    },
    Hazard(
        testDescription: "a party that passed a barrier cannot leave it afterwards",
        safeguard: "if condition == IF_WAITING and (",
        replacement: "if false and ("
    ) { nodes, _ in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("arrive", "s", ["b", "2", "o"]) }
        return try await node.request("release", "s", ["1", "", "w"]).first == "granted"
    },
]
