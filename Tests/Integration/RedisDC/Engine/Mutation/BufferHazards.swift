// Facts of bounded buffers: pass.lua, read.lua and end_item.lua.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    static let buffers: [Hazard] = [
        Hazard(
            testDescription: "the items of a buffer are destroyed in the same step as its places",
            safeguard: "if items and string.sub(items, 1, 2) == ITEMS then", replacement: "if false then"
        ) { nodes, redis in
            let node = try await nodes()
            try await put("a", node)
            _ = try await node.request("destroy", "s", ["kf"])
            return try await redis.send("HGET", "rdc:{default:0}:book", "t:s#items").bytes?.first == UInt8(ascii: "x")
        },
        Hazard(
            testDescription: "a released item is available again",
            safeguard: "if resource and claim_tick >= created and kind == ITEMS then", replacement: "if false then"
        ) { nodes, redis in
            let node = try await nodes()
            try await put("x", node)
            let claim = try await node.takeItem()
            _ = try await node.request("releaseItem", "s#items", claim: claim)
            return try await Audit(redis).items.count == 1
        },
        Hazard(
            testDescription: "two claims do not get the same item",
            safeguard: "call('ZREM', index, line)\n", replacement: ""
        ) { nodes, redis in
            let node = try await nodes()
            for item in ["x", "y"] as [RedisArgument] { try await put(item, node) }
            let (one, two) = (try await node.takeItem(), try await node.takeItem())
            return try await node.claim(one, redis)?.note != node.claim(two, redis)?.note
        },
        Hazard(
            testDescription: "a claim that is not held is not passed on",
            safeguard: "if slot_state ~= HELD or slot_number ~= tonumber(ARGV[6]) then return {'none'} end",
            replacement: ""
        ) { nodes, _ in
            let node = try await nodes()
            for _ in 0..<2 { _ = try await node.request("acquire", "s", ["kf", "1", "l"]) }
            return try await node.request("pass", "s#items", ["if", "0", "t:s", "x"], claim: 2) == ["none"]
        },
    ]
}

private func put(_ item: RedisArgument, _ node: ForeignNode) async throws {
    let place = try await node.number { _ = try await node.request("acquire", "s", ["kf", "5", "l"]) }
    _ = try await node.request("pass", "s#items", ["if", "0", "t:s", item], claim: place)
}

extension ForeignNode {
    /// Takes an item, and returns the number of the claim.
    fileprivate func takeItem() async throws -> Int {
        let claim = try await number { _ = try await request("acquire", "s#items", ["if", "0", "l"]) }
        _ = try await request("read", "s#items", claim: claim)
        return claim
    }
}
