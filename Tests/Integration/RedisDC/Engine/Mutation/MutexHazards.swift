// Facts of mutexes: the release of a mutex, and the end of its claims.
import Hiredis

@testable import RedisDCTestSupport

extension Hazard {
    static let mutexes: [Hazard] = [
        Hazard(
            testDescription: "only the holder releases a mutex",
            safeguard: ".. ':' .. arguments[4] then call('HDEL', partition_state, arguments[3])",
            replacement: ".. ':' .. arguments[4] or true then call('HDEL', partition_state, arguments[3])"
        ) { nodes, redis in
            let (one, two) = (try await nodes(), try await nodes())
            _ = try await one.request("acquire", "s", lock)
            _ = try await two.request("releaseMutex", "s", number: 2, claim: 1)
            return try await resource(redis) != nil
        },
        Hazard(
            testDescription: "a mutex is released to its first waiter",
            safeguard: "== 'mfp\\0\\0\\0\\0\\0\\0\\0\\0' and", replacement: "~= '' and"
        ) { nodes, redis in
            let (one, two) = (try await nodes(), try await nodes())
            _ = try await one.request("acquire", "s", lock)
            _ = try await two.request("acquire", "s", lock)
            _ = try await one.request("releaseMutex", "s", claim: 1)
            return try await two.claim(1, redis)?.state == "h"
        },
        Hazard(
            testDescription: "a release of a mutex that arrives again does not end the next holder's claim",
            safeguard: "claim_state = 'd' call('ZREM', partition_index", replacement: "call('ZREM', partition_index"
        ) { nodes, redis in
            let (one, two) = (try await nodes(), try await nodes())
            _ = try await one.request("acquire", "s", lock)
            _ = try await one.request("releaseMutex", "s", claim: 1)
            _ = try await two.request("acquire", "s", lock)
            _ = try await one.request("releaseMutex", "s", claim: 1)
            return try await two.claim(1, redis)?.state == "h"
        },
        Hazard(
            testDescription: "a mutex that a dead session had released stays with the next holder",
            safeguard: "claim_state = 'd' call('ZREM', partition_index", replacement: "call('ZREM', partition_index"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            _ = try await dying.request("acquire", "s", lock)
            _ = try await dying.request("releaseMutex", "s", claim: 1)
            _ = try await living.request("acquire", "s", lock)
            try await dying.expire()
            _ = try await living.end("endPermits", "s", claim: 1, of: dying)
            return try await living.claim(1, redis)?.state == "h"
        },
        Hazard(
            testDescription: "the release of a destroyed mutex that groups used leaves no line",
            safeguard: "call('ZREM', partition_index, 'h' .. resource_name .. '\\0' .. ending_claim_id) end",
            replacement: "end"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("acquireInGroup", "s", lock)
            _ = try await node.request("destroy", "s", ["mf"])
            _ = try await node.request("releaseMutex", "s", claim: 1)
            return try await Audit(redis).lines.isEmpty
        },
    ]
}
