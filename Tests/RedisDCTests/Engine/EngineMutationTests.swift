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
                    for name in ["head", "thing", "tail", "acquire", "release", "signal", "count"] {
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

private func thing(_ redis: RedisClient) async throws -> Audit.Thing? { try await Audit(redis).things["s"] }

private func untilDead(_ node: ForeignNode, _ redis: RedisClient) async throws {
    // By the server's clock, which decides.
    try await until("the session has ended") {
        let score = try await redis.send("ZSCORE", "rdc:{default:0}:sessions", .string(node.session)).string
        let time = try await redis.send("TIME").array?.compactMap(\.integer) ?? []
        return Double(score ?? "0")! < Double(time[0]) * 1_000_000 + Double(time[1])
    }
}

private let hazards: [Hazard] = [
    Hazard(
        testDescription: "a signal that is sent twice signals once", guardian: "local answer = found[3]",
        without: "local answer = nil"
    ) { nodes, redis in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("signal", "s", ["s", "0", "f", 1], number: 1) }
        return try await thing(redis)?.free == 1
    },
    Hazard(
        testDescription: "an acquire that is sent twice takes once", guardian: "local answer = found[3]",
        without: "local answer = nil"
    ) { nodes, redis in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("acquire", "s", ["s", "5", "f", 1, "c", "0"], number: 1) }
        return try await thing(redis)?.free == 4
    },
    Hazard(
        testDescription: "nobody overtakes who waits for more", guardian: "(waiting == 0 or policy == 'b')",
        without: "true"
    ) { nodes, _ in
        let (one, two) = (try await nodes(long), try await nodes(long))
        _ = try await one.request("acquire", "s", ["s", "1", "f", 2, "c", "0"])
        return try await two.request("acquire", "s", ["s", "1", "f", 1, "c", "1"]) == ["none"]
    },
    Hazard(
        testDescription: "a dead waiter is passed over", guardian: "state ~= 'w' or not is_alive",
        without: "state ~= 'w'"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(50)), try await nodes(long))
        _ = try await dying.request("acquire", "s", ["s", "0", "f", 1, "l", "0"])
        _ = try await living.request("acquire", "s", ["s", "0", "f", 1, "l", "0"])
        try await untilDead(dying, redis)
        _ = try await living.request("signal", "s", ["s", "0", "f", 1])
        return try await Audit(redis).claims["\(living.session):1"]?.state == "h"
    },
    Hazard(
        testDescription: "a request that comes after its cancel takes nothing",
        guardian: "if owner == sid and number > settled then", without: "if false then"
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("release", "s", ["1", "", "0"], number: 2)
        return try await node.request("acquire", "s", ["s", "1", "f", 1, "l", "0"], number: 1) == ["over"]
    },
    Hazard(
        testDescription: "what a dead session took and did not confirm goes back",
        guardian: "          free = free + n\n        end", without: "        end"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(50)), try await nodes(long))
        _ = try await dying.request("acquire", "s", ["s", "1", "f", 1, "c", "0"])
        try await untilDead(dying, redis)
        _ = try await living.request("release", "s", ["1", .string(dying.session), "0"])
        return try await thing(redis)?.free == 1
    },
    Hazard(
        testDescription: "what was confirmed does not go back", guardian: "if state == 'g' then",
        without: "if false then"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(200)), try await nodes(long))
        _ = try await dying.request("acquire", "s", ["s", "1", "f", 1, "c", "0"])
        _ = try await dying.request("give", "s", confirming: 1)
        try await untilDead(dying, redis)
        _ = try await living.request("release", "s", ["1", .string(dying.session), "0"])
        return try await thing(redis)?.free == 0
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
        guardian: "at > created", without: "true"
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("acquire", "s", ["s", "1", "f", 1, "l", "0"])
        _ = try await node.request("destroy", "s", ["s"])
        _ = try await node.request("create", "s", ["s", "1", "f"])
        _ = try await node.request("release", "s", ["1", "", "0"])
        return try await thing(redis)?.free == 1
    },
    Hazard(
        testDescription: "a request that was settled long ago is refused",
        guardian: "if req <= settled then return {'stale'} end", without: ""
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("signal", "s", ["s", "0", "f", 1])
        _ = try await node.request("give", "s", settled: 1)
        _ = try await node.request("signal", "s", ["s", "0", "f", 1], number: 1)
        return try await thing(redis)?.free == 1
    },
    Hazard(
        testDescription: "nobody ends the claim of a living session", guardian: "their_ends > now and ARGV[8] ~= '1'",
        without: "false"
    ) { nodes, redis in
        let (one, two) = (try await nodes(long), try await nodes(long))
        _ = try await one.request("acquire", "s", ["s", "1", "f", 1, "l", "0"])
        _ = try? await two.request("release", "s", ["1", .string(one.session), "0"])
        return try await thing(redis)?.free == 0
    },
    Hazard(
        testDescription: "a session that has ended is refused",
        guardian: "if ends <= now then return {'lost', 'ended'} end",
        without: ""
    ) { nodes, redis in
        let node = try await nodes(.milliseconds(50))
        try await untilDead(node, redis)
        return try await node.request("acquire", "s", ["s", "1", "f", 1, "l", "0"]).first == "lost"
    },
    Hazard(
        testDescription: "another number of permits is a conflict",
        guardian: "if policy ~= ARGV[8] or (permits ~= wanted and limit ~= wanted) then", without: "if false then"
    ) { nodes, _ in
        let node = try await nodes(long)
        _ = try await node.request("create", "s", ["s", "3", "f"])
        return try await node.request("create", "s", ["s", "4", "f"]).first == "conflict"
    },
    Hazard(
        testDescription: "a condition keeps no notify for those who come later",
        guardian: "if kind == 'c' and free > waiting then", without: "if false then"
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
        guardian: "kind == 'x' or kind == 'c' or", without: "kind == 'x' or"
    ) { nodes, redis in
        let node = try await nodes(long)
        _ = try await node.request("signal", "s", ["c", "0", "f", 1])
        return try await thing(redis) == nil
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
        guardian: "owner == sid or record and unpacked('<d', record) > now", without: "true"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(50)), try await nodes(long))
        _ = try await dying.request("arrive", "s", ["b", "2", "o"])
        try await untilDead(dying, redis)
        _ = try await living.request("arrive", "s", ["b", "2", "o"])
        return try await thing(redis)?.signalled == 0
    },
    Hazard(
        testDescription: "an id counts a latch down once", guardian: "if ARGV[9] == '' or", without: "if true or"
    ) { nodes, _ in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("count", "s", ["l", "2", "d", "me"]) }
        return try await node.request("acquire", "s", ["l", "2", "d", 1, "c", "1"]) == ["none"]
    },
    Hazard(
        testDescription: "counting down that is sent twice counts once", guardian: "local answer = found[3]",
        without: "local answer = nil"
    ) { nodes, redis in
        let node = try await nodes(long)
        for _ in 0..<2 { _ = try await node.request("count", "s", ["l", "3", "d", ""], number: 1) }
        return try await thing(redis)?.signalled == 1
    },
    Hazard(
        testDescription: "the death of a participant breaks a latch that was made so",
        guardian: "if owner ~= sid and policy == 'f' then", without: "if false then"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(.milliseconds(50)), try await nodes(long))
        _ = try await dying.request("register", "s", ["l", "1", "f"])
        try await untilDead(dying, redis)
        _ = try await living.request("release", "s", ["1", .string(dying.session), "0"])
        return try await living.request("acquire", "s", ["l", "1", "f", 1, "c", "1"]) == ["broken"]
    },
]
