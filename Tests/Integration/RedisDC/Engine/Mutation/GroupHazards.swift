// Facts of groups: group_acquire.lua, group_grant.lua and end_group.lua.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    static let groups: [Hazard] = [
        Hazard(
            testDescription: "a mutex that is locked can be used by groups",
            safeguard: "(FAMILY ~= GROUPS or ARGV[6] ~= MEMBER)", replacement: "true"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", lock)
            return try await node.request("acquireInGroup", "s", member("g")) == ["0"]
        },
        Hazard(
            testDescription: "the waiters of a group enter with its first member",
            safeguard: "if members[note] == 1 then entering_group = string.sub(note, 2) end", replacement: ""
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("acquireInGroup", "s", lock)
            _ = try await node.request("acquireInGroup", "s", member("g"))
            _ = try await node.request("acquireInGroup", "s", lock)
            _ = try await node.request("acquireInGroup", "s", member("g"))
            _ = try await node.request("releaseInGroup", "s", claim: 1)
            return try await node.claim(4, redis)?.state == "h"
        },
        Hazard(
            testDescription: "a member enters while its group is inside",
            safeguard: "passes = members > 0 or free >= wanted and waiting == 0",
            replacement: "passes = free >= wanted and waiting == 0"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquireInGroup", "s", member("g"))
            return try await node.request("acquireInGroup", "s", member("g")) != ["0"]
        },
        Hazard(
            testDescription: "a group is inside until its last member leaves",
            safeguard: "if group_created <= claim_tick and members > 1 then", replacement: "if false then"
        ) { nodes, _ in
            let node = try await nodes()
            for _ in 0..<2 { _ = try await node.request("acquireInGroup", "s", member("g")) }
            _ = try await node.request("releaseInGroup", "s", claim: 1)
            return try await node.request("acquireInGroup", "s", lock + [1, "1"]) == ["-1"]
        },
        Hazard(
            testDescription: "the last member of a group to leave returns its permit",
            safeguard: "hdel[1] = group_field\n      count = 1", replacement: "hdel[1] = group_field"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquireInGroup", "s", member("g"))
            _ = try await node.request("releaseInGroup", "s", claim: 1)
            return try await node.request("acquireInGroup", "s", lock + [1, "1"]) != ["-1"]
        },
        Hazard(
            testDescription: "a group inside a destroyed resource is not inside a new one of the same name",
            safeguard: "if group_created == created then members = count end", replacement: "members = count"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquireInGroup", "s", member("g"))
            _ = try await node.request("destroy", "s", ["mf"])
            _ = try await node.request("acquireInGroup", "s", lock)
            return try await node.request("acquireInGroup", "s", member("g")) == ["0"]
        },
        Hazard(
            testDescription: "a lease whose line is gone adds no permit to a mutex that groups use",
            safeguard: "== 0 then is_current = false end", replacement: "== 0 then end"
        ) { nodes, redis in
            let node = try await nodes()
            for _ in 0..<2 { _ = try await node.request("acquireInGroup", "s", lock) }
            let id = await node.id(1)
            _ = try await redis.send("ZREM", "rdc:{default:0}:index", .bytes(Array("hs\0\(id)".utf8)))
            _ = try await node.request("releaseInGroup", "s", claim: 1)
            return try await node.claim(2, redis)?.state == "w"
        },
    ]
}
