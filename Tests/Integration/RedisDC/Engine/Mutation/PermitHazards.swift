// Facts of semaphores, conditions and read-write locks: resource.lua, acquire.lua, grant.lua and end_permits.lua.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    static let permits: [Hazard] = [
        Hazard(
            testDescription: "a request does not overtake a waiter for more permits",
            safeguard: "(waiting == 0 or kind == OVERTAKING_SEMAPHORE)", replacement: "true"
        ) { nodes, _ in
            let (one, two) = (try await nodes(), try await nodes())
            _ = try await one.request("acquire", "s", ["sf", "1", "c", 2])
            return try await two.request("acquire", "s", ["sf", "1", "c", 1, "1"]) == ["-1"]
        },
        Hazard(
            testDescription: "a dead waiter is passed over",
            safeguard: "waiter_state == DONE or session.expires <= now", replacement: "waiter_state == DONE"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            _ = try await dying.request("acquire", "s", ["sf", "0", "l"])
            _ = try await living.request("acquire", "s", ["sf", "0", "l"])
            try await dying.expire()
            try await living.signal("s")
            return try await living.claim(1, redis)?.state == "h"
        },
        Hazard(
            testDescription: "a waiter whose session is corrupt does not stop the grants to others",
            safeguard: "if records[2] and #records[2] == SESSION_SIZE then", replacement: "if records[2] then"
        ) { nodes, redis in
            let (corrupt, other) = (try await nodes(), try await nodes())
            _ = try await corrupt.request("acquire", "s", ["sf", "0", "c"])
            _ = try await other.request("acquire", "s", ["sf", "0", "c"])
            _ = try await redis.send("HSET", "rdc:{default:0}:book", .string("s:\(corrupt.session)"), "x")
            do { try await other.signal("s") } catch { return false }
            return try await resource(redis)?.waiting == 0
        },
        Hazard(
            testDescription: "without its clock a partition still grants",
            safeguard: "tick = decode(NUMBER, call('HGET', state, 'clock') or NEVER) + 1",
            replacement: "tick = decode(NUMBER, call('HGET', state, 'clock')) + 1"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await redis.send("HDEL", "rdc:{default:0}:book", "clock")
            do { return try await Int(node.request("acquire", "s", lock)[0])! > 1 << 50 } catch { return false }
        },
        Hazard(
            testDescription: "a grant to the session that signals counts as a notice",
            safeguard: "session.slots, session_record = slots, nil", replacement: "session.slots = slots"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "0", "c"])
            try await node.signal("s")
            return try await node.run("heartbeat", [.string(node.session), 60_000_000, "", ""])[1] == "1"
        },
        Hazard(
            testDescription: "fences grow",
            safeguard: " + 1\nif not (tick >= now and tick < MAX_TICK) then tick = now end", replacement: ""
        ) { nodes, _ in
            let node = try await nodes()
            let first = try await node.request("acquire", "s", ["sf", "2", "l"])
            let second = try await node.request("acquire", "s", ["sf", "2", "l"])
            return UInt64(first[0])! < UInt64(second[0])!
        },
        Hazard(
            testDescription: "a lease of a destroyed semaphore adds no permit to a new one of the same name",
            safeguard: "if resource and claim_tick >= created then", replacement: "if resource then"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "1", "l"])
            _ = try await node.request("destroy", "s", ["sf"])
            _ = try await node.request("create", "s", ["sf", "1"])
            _ = try await node.request("release", "s", claim: 1)
            return try await resource(redis)?.free == 1
        },
        Hazard(
            testDescription: "a different number of permits is a conflict",
            safeguard: "if permits ~= requested and limit ~= requested then return {'conflict', kind, limit} end",
            replacement: ""
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("create", "s", ["sf", "3"])
            return try await node.request("create", "s", ["sf", "4"]).first == "conflict"
        },
        Hazard(
            testDescription: "a condition keeps no notification for later waiters",
            safeguard: "if kind == CONDITION and free > waiting then", replacement: "if false then"
        ) { nodes, _ in
            let node = try await nodes()
            // More waiters than one script wakes: `recheck` wakes the others.
            for _ in 0..<130 { _ = try await node.request("acquire", "s", ["cf", "0", "c"]) }
            _ = try await node.request("signal", "s", ["cf", "0", 1000])
            let late = try await node.request("acquire", "s", ["cf", "0", "c"], number: 132)
            _ = try await node.run("recheck", ["s"])
            let again = try await node.request("acquire", "s", ["cf", "0", "c"], number: 132)
            return late == ["0"] && again == ["0"]
        },
        Hazard(
            testDescription: "a condition without waiters does not exist",
            safeguard: "(kind == CONDITION or kind == PHASER", replacement: "(kind == PHASER"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("signal", "s", ["cf", "0"])
            return try await resource(redis) == nil
        },
        Hazard(
            testDescription: "a preferred request overtakes waiters, but not preferred ones",
            safeguard: "passes = #call('ZRANGEBYLEX', index, from, to, 'LIMIT', '0', '1') == 0",
            replacement: "passes = true"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "3", "l", 2])
            _ = try await node.request("acquire", "s", ["sf", "3", "l", 2, "0", "0"])
            return try await node.request("acquire", "s", ["sf", "3", "l", 1, "1", "0"]) == ["-1"]
        },
    ]
}
