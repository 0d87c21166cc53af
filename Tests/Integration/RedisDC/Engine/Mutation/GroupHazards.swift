// Facts of groups: groups.lua and group_grant.lua.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    static let groups: [Hazard] = [
        Hazard(
            testDescription: "a mutex that is locked can be used by groups",
            safeguard: "if resource_family ~= 'g' and not is_member then", replacement: "if resource_family ~= 'g' then"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", lock)
            return try await node.request("acquireInGroup", "s", member("g")) == ["0"]
        },
        Hazard(
            testDescription: "the waiters of a group enter with its first member",
            safeguard: "if admission_members[waiter_note] == 1 then", replacement: "if false then"
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
            safeguard: "passes = members > 0 or is_free and", replacement: "passes = is_free and"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquireInGroup", "s", member("g"))
            return try await node.request("acquireInGroup", "s", member("g")) != ["0"]
        },
        Hazard(
            testDescription: "a group is inside until its last member leaves",
            safeguard: "if group_created <= claim_tick and group_members > 1 then", replacement: "if false then"
        ) { nodes, _ in
            let node = try await nodes()
            for _ in 0..<2 { _ = try await node.request("acquireInGroup", "s", member("g")) }
            _ = try await node.request("releaseInGroup", "s", claim: 1)
            return try await node.request("acquireInGroup", "s", lock + [1, "1"]) == ["-1"]
        },
        Hazard(
            testDescription: "the last member of a group to leave returns its permit",
            safeguard: "= group_field released_2 = 1", replacement: "= group_field"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquireInGroup", "s", member("g"))
            _ = try await node.request("releaseInGroup", "s", claim: 1)
            return try await node.request("acquireInGroup", "s", lock + [1, "1"]) != ["-1"]
        },
        Hazard(
            testDescription: "a group inside a destroyed resource is not inside a new one of the same name",
            safeguard: "if group_created == resource_created then", replacement: "if true then"
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
