// Facts of bounded buffers: buffers.lua and read.lua.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    static let buffers: [Hazard] = [
        Hazard(
            testDescription: "the items of a buffer are destroyed in the same step as its places",
            safeguard: "if items and", replacement: "if false and"
        ) { nodes, redis in
            let node = try await nodes()
            try await put("a", node)
            _ = try await node.request("destroy", "s", ["kf"])
            return try await redis.send("HGET", "rdc:{default:0}:book", "t:s#items").bytes?.first == UInt8(ascii: "x")
        },
        Hazard(
            testDescription: "a released item is available again",
            safeguard: "if resource_stored and claim_tick >= resource_created and resource_kind == 'if' then",
            replacement: "if false then"
        ) { nodes, redis in
            let node = try await nodes()
            try await put("x", node)
            let claim = try await node.takeItem()
            _ = try await node.request("releaseItem", "s#items", claim: claim)
            return try await Audit(redis).items.count == 1
        },
        Hazard(
            testDescription: "a claim that waits again after a failover frees no item that it does not hold",
            safeguard: "if claim_state == 'w' then return {'family', 'p'} end", replacement: ""
        ) { nodes, redis in
            let node = try await nodes()
            let claim = try await node.number { _ = try await node.request("acquire", "s#items", ["if", "0", "l"]) }
            return try await node.request("releaseItem", "s#items", claim: claim) == ["family", "p"]
        },
        Hazard(
            testDescription: "two claims do not get the same item",
            safeguard: "call('ZREM', partition_index, line)", replacement: ""
        ) { nodes, redis in
            let node = try await nodes()
            for item in ["x", "y"] as [RedisArgument] { try await put(item, node) }
            let (one, two) = (try await node.takeItem(), try await node.takeItem())
            return try await node.claim(one, redis)?.note != node.claim(two, redis)?.note
        },
        Hazard(
            testDescription: "a claim that is not held is not passed on",
            safeguard: "if slot_state ~= 'h' or slot_number ~= tonumber(claim_number) then return {'none'} end",
            replacement: ""
        ) { nodes, _ in
            let node = try await nodes()
            for _ in 0..<2 { _ = try await node.request("acquire", "s", ["kf", "1", "l"]) }
            return try await node.request("pass", "s#items", ["if", "0", "t:s", "x"], claim: 2) == ["none"]
        },
        Hazard(
            testDescription: "a put with an id that the buffer remembers puts nothing",
            safeguard: knownPut, replacement: ""
        ) { nodes, redis in
            let (one, two) = (try await nodes(), try await nodes())
            let replies = [try await putOnce("x", id: "a", one), try await putOnce("x", id: "a", two)]
            return try await Audit(redis).items.count == 1 && replies == [["1"], ["known"]]
        },
        Hazard(
            testDescription: "a put with an id that the full buffer remembers is not queued",
            safeguard: knownPut, replacement: ""
        ) { nodes, _ in
            let node = try await nodes()
            for id in ["a", "b"] { _ = try await putOnce("x", id: id, node) }
            return try await node.request("acquireForPut", "s", ["kf", "2", "l", 1, "0", "1", "a"]) == ["known"]
        },
        Hazard(
            testDescription: "the step that stores an item remembers the id of the put",
            safeguard: "call('ZADD', partition_put_ids,", replacement: "call('ZADD', partition_put_ids, 'XX',"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await putOnce("x", id: "a", node)
            return try await redis.send("ZRANGE", "rdc:{default:0}:put:s", 0, -1).array?.map(\.string) == ["a"]
        },
        Hazard(
            testDescription: "a new buffer does not know the ids of a destroyed one",
            safeguard: "put_tick and put_tick + 0 >= resource_created", replacement: "put_tick"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await putOnce("x", id: "a", node)
            _ = try await node.request("destroy", "s", ["kf"])
            for name in ["s", "s#items"] as [RedisArgument] { _ = try await node.run("clear", [name]) }
            for id in ["b", "a"] { _ = try await putOnce("y", id: id, node) }
            return try await Audit(redis).items.count == 2
        },
        Hazard(
            testDescription: "a buffer remembers at most 10,000 ids",
            safeguard: "call('ZREMRANGEBYRANK', partition_put_ids, '0', '-10001')", replacement: ""
        ) { nodes, redis in
            let node = try await nodes()
            let others = (0..<10_000).flatMap { [.integer($0), .string("\($0)")] as [RedisArgument] }
            _ = try await redis.send(RedisCommand(["ZADD", "rdc:{default:0}:put:s"] + others))
            _ = try await putOnce("x", id: "a", node)
            return try await redis.send("ZCARD", "rdc:{default:0}:put:s").integer == 10_000
        },
        Hazard(
            testDescription: "the ids of a buffer expire an hour after the last put",
            safeguard: "call('PEXPIRE', partition_put_ids, '3600000')", replacement: ""
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await putOnce("x", id: "a", node)
            let left = try await redis.send("PTTL", "rdc:{default:0}:put:s").integer ?? 0
            return left > 0 && left <= 3_600_000
        },
    ]

    private static let knownPut = "if put_tick and put_tick + 0 >= resource_created then return {'known'} end"
}

private func putOnce(_ item: RedisArgument, id: String, _ node: ForeignNode) async throws -> [String] {
    let place = try await node.number { _ = try await node.request("acquire", "s", ["kf", "2", "l"]) }
    return try await node.request("passOnce", "s#items", ["if", "0", "t:s", item, .string(id)], claim: place)
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
