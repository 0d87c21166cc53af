// Facts of the bounds of a script's work, which other clients of the server wait for.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    static let bounds: [Hazard] = [
        Hazard(
            testDescription: "an item of a buffer is stored apart from the records, which scripts read in pages",
            safeguard: "call('HSET', partition_values, 'v:'", replacement: "call('HSET', partition_state, 'v:'"
        ) { nodes, redis in
            let node = try await nodes()
            try await node.put(.bytes(bytes(100_000)))
            return try await maxRecordSize(redis) < 4096
        },
        Hazard(
            testDescription: "what a party brings to an exchanger is stored apart from the records",
            safeguard: "call('HSET', partition_values, 'b:'", replacement: "call('HSET', partition_state, 'b:'"
        ) { nodes, redis in
            let node = try await nodes()
            try await node.bring(2, parties: "3")
            return try await maxRecordSize(redis) < 4096
        },
        Hazard(
            testDescription: "a read of a meeting's values ends at 256 KiB, and the next one continues there",
            safeguard: "if bytes >= 262144 then", replacement: "if false then"
        ) { nodes, _ in
            let node = try await nodes()
            try await node.bring(6, parties: "6")
            let first = try await node.request("read", "s", claim: 1)
            let second = try await node.request("read", "s", [4], claim: 1)
            return (first.count, first.last, second.count, second.last) == (6, "4", 4, "0")
        },
        Hazard(
            testDescription: "a step deletes at most 8 MiB of the items of a destroyed buffer",
            safeguard: "if bytes >= 8388608 then", replacement: "if false then"
        ) { nodes, redis in
            let node = try await nodes()
            for _ in 0..<10 { try await node.put(.bytes(bytes(1 << 20))) }
            _ = try await node.request("destroy", "s", ["kf"])
            let isMore = try await node.run("clear", ["s#items"]).first == "more"
            let left = try await Audit(redis).items.count
            return isMore && left == 2
        },
        Hazard(
            testDescription: "a step refuses at most 160 waiters of a destroyed resource",
            safeguard: "'LIMIT', '0', '160')", replacement: "'LIMIT', '0', 1000)"
        ) { nodes, redis in
            let node = try await nodes()
            for _ in 0..<170 { _ = try await node.request("acquire", "s", ["sf", "0", "l"]) }
            _ = try await node.request("destroy", "s", ["sf"])
            return try await Audit(redis).claims.count == 10
        },
        Hazard(
            testDescription: "a page of an inspection lists at most 128 holders",
            safeguard: "tonumber(arguments[2]), 128)", replacement: "tonumber(arguments[2]), 1000)"
        ) { nodes, _ in
            let node = try await nodes()
            for _ in 0..<130 { _ = try await node.request("acquire", "s", ["sf", "1000", "l"]) }
            let first = try await node.run("inspect", ["s", 10_000])
            return first.count { $0.hasPrefix(node.session + ":") } == 128
        },
        Hazard(
            testDescription: "a page of a session's claims has at most 200 slots",
            safeguard: "session_slots, first + 200)", replacement: "session_slots, first + 2000)"
        ) { nodes, _ in
            let node = try await nodes()
            for _ in 0..<260 { _ = try await node.request("acquire", "s", ["sf", "1000", "l"]) }
            return try await node.run("claims", [.string(node.session), 0])[1] == "200"
        },
        Hazard(
            testDescription: "a sweep that counts the slots of a corrupt session looks at about 2,048",
            safeguard: "left = left - (slot - session_slots + 1)", replacement: ""
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            // The last slot of each page of 512.
            for page in 1...8 {
                let slot = "c:\(dying.session):\(512 * page - 1)"
                _ = try await redis.send("HSET", "rdc:{default:0}:book", .string(slot), "d\0\0\0\0\0\0\0\0")
            }
            _ = try await redis.send("HSET", "rdc:{default:0}:book", .string("s:\(dying.session)"), "corrupt")
            let first = try await living.run("sweep", [.string(dying.session), ""])
            var below = first[1]
            while below != "0" { below = try await living.run("sweep", [.string(dying.session), .string(below)])[1] }
            let slots = try await Audit(redis).slots
            return first == ["ok", "2048"] && slots.isEmpty
        },
        Hazard(
            testDescription: "a notice to a corrupt session does not end the count of its slots",
            safeguard: "-4503599627370496", replacement: "-1"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            let claim = try await dying.number { _ = try await dying.request("acquire", "s", ["sf", "1", "l"]) }
            // The last slot of each page of 512.
            for page in 1...8 {
                let slot = "c:\(dying.session):\(512 * page - 1)"
                _ = try await redis.send("HSET", "rdc:{default:0}:book", .string(slot), "d\0\0\0\0\0\0\0\0")
            }
            _ = try await redis.send("HSET", "rdc:{default:0}:book", .string("s:\(dying.session)"), "corrupt")
            var below = try await living.run("sweep", [.string(dying.session), ""])[1]
            _ = try await living.end("endPermits", "s", claim: claim, of: dying, word: "lost")
            while below != "0" { below = try await living.run("sweep", [.string(dying.session), .string(below)])[1] }
            return try await Audit(redis).slots.isEmpty
        },
        Hazard(
            testDescription: "the script that opens a barrier of more than 256 parties leaves all grants to the next",
            safeguard: "if #lines > 256 then", replacement: "if false then"
        ) { nodes, redis in
            let node = try await nodes()
            var reply: [String] = []
            for _ in 0..<260 { reply = try await node.request("arrive", "s", ["bo", "260", "a"]) }
            let waiting = try await resource(redis)?.waiting
            return reply == ["more", "0"] && waiting == 260
        },
        Hazard(
            testDescription: "a step lets at most 96 members enter with their group",
            safeguard: "nil, 0, 0, false, 96", replacement: "nil, 0, 0, false, 128"
        ) { nodes, redis in
            let node = try await nodes()
            let claim = try await node.number { _ = try await node.request("acquireInGroup", "s", lock) }
            for _ in 0..<100 { _ = try await node.request("acquireInGroup", "s", member("g")) }
            _ = try await node.request("releaseInGroup", "s", claim: claim)
            return try await resource(redis)?.waiting == 4
        },
        Hazard(
            testDescription: "an arrival at a barrier removes at most 256 parties of expired sessions",
            safeguard: "if #dead == 256 then break end", replacement: ""
        ) { nodes, redis in
            for _ in 0..<260 {
                let dying = try await nodes()
                _ = try await dying.request("arrive", "s", ["bo", "261", "a"])
                try await dying.expire()
            }
            let reply = try await nodes().request("arrive", "s", ["bo", "261", "a"])
            let waiting = try await resource(redis)?.waiting
            return reply == ["more", "0"] && waiting == 5
        },
    ]
}

private func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 120, count: count) }

/// Returns the size of the largest record of the state.
private func maxRecordSize(_ redis: RedisClient) async throws -> Int {
    let records = try await redis.send("HVALS", "rdc:{default:0}:book").array ?? []
    return records.compactMap { $0.bytes?.count }.max() ?? 0
}

extension ForeignNode {
    /// Puts an item into the buffer `s`.
    fileprivate func put(_ item: RedisArgument) async throws {
        let place = try await number { _ = try await request("acquire", "s", ["kf", "20", "l"]) }
        _ = try await request("pass", "s#items", ["if", "0", "t:s", item], claim: place)
    }

    /// Sends as many arrivals at an exchanger, each with a value of 64 KiB.
    fileprivate func bring(_ count: Int, parties: RedisArgument) async throws {
        for _ in 0..<count {
            _ = try await request("arrive", "s", ["eo", parties, "e", .bytes(bytes(65_536))])
        }
    }
}
