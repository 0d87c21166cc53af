// Facts of semaphores, conditions and read-write locks: resources.lua, permits.lua, grant.lua and releases.lua.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    static let permits: [Hazard] = [
        Hazard(
            testDescription: "a request does not overtake a waiter for more permits",
            safeguard: "(resource_waiting == 0 or resource_kind == 'sb')", replacement: "true"
        ) { nodes, _ in
            let (one, two) = (try await nodes(), try await nodes())
            _ = try await one.request("acquire", "s", ["sf", "1", "c", 2])
            return try await two.request("acquire", "s", ["sf", "1", "c", 1, "1"]) == ["-1"]
        },
        Hazard(
            testDescription: "a dead waiter is passed over",
            safeguard: " == 'd' or session.expires <= clock_now then", replacement: " == 'd' then"
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
            safeguard: "if records[2] and #records[2] == 24 then", replacement: "if records[2] then"
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
            safeguard: " or '\\0\\0\\0\\0\\0\\0\\0\\0') + 1", replacement: ") + 1"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await redis.send("HDEL", "rdc:{default:0}:book", "clock")
            do { return try await Int(node.request("acquire", "s", lock)[0])! > 1 << 50 } catch { return false }
        },
        Hazard(
            testDescription: "a grant to the session that signals counts as a notice",
            safeguard: "session.slots, slot_session_record = own_slots, nil", replacement: "session.slots = own_slots"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "0", "c"])
            try await node.signal("s")
            return try await node.run("heartbeat", [.string(node.session), 60_000_000, "", ""])[1] == "1"
        },
        Hazard(
            testDescription: "fences grow",
            safeguard:
                ") + 1 if not (clock_tick >= clock_now and clock_tick < 9007199254740992) then clock_tick = "
                + "clock_now end",
            replacement: ")"
        ) { nodes, _ in
            let node = try await nodes()
            let first = try await node.request("acquire", "s", ["sf", "2", "l"])
            let second = try await node.request("acquire", "s", ["sf", "2", "l"])
            return UInt64(first[0])! < UInt64(second[0])!
        },
        Hazard(
            testDescription: "a lease of a destroyed semaphore adds no permit to a new one of the same name",
            safeguard: "if resource_stored and claim_tick >= resource_created then",
            replacement: "if resource_stored then"
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
            safeguard: "if resource_permits ~= requested and resource_limit ~= requested then",
            replacement: "if false then"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("create", "s", ["sf", "3"])
            return try await node.request("create", "s", ["sf", "4"]).first == "conflict"
        },
        Hazard(
            testDescription: "a condition keeps no notification for later waiters",
            safeguard: "if resource_kind == 'cf' and resource_free > resource_waiting then",
            replacement: "if false then"
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
            safeguard: "(resource_kind == 'cf' or resource_kind == 'pf'", replacement: "(resource_kind == 'pf'"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("signal", "s", ["cf", "0"])
            return try await resource(redis) == nil
        },
        Hazard(
            testDescription: "a preferred request overtakes waiters, but not preferred ones",
            safeguard: "passes = #call('ZRANGEBYLEX', partition_index, from, to, 'LIMIT', '0', '1') == 0",
            replacement: "passes = true"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "3", "l", 2])
            _ = try await node.request("acquire", "s", ["sf", "3", "l", 2, "0", "0"])
            return try await node.request("acquire", "s", ["sf", "3", "l", 1, "1", "0"]) == ["-1"]
        },
    ]
}
