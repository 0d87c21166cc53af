// Facts of numbered requests: slots.lua and claims.lua.
import Hiredis

@testable import RedisDCTestSupport

extension Hazard {
    static let slots: [Hazard] = [
        Hazard(
            testDescription: "a repeated resize does not undo another one in between",
            safeguard: "if request_number == slot_number then return tonumber(",
            replacement: "if false then return tonumber("
        ) { nodes, redis in
            let (node, other) = (try await nodes(), try await nodes())
            try await node.signal("s")
            _ = try await node.request("resize", "s", ["sf", "", 1], number: 7)
            _ = try await other.request("resize", "s", ["sf", "", 9])
            _ = try await node.request("resize", "s", ["sf", "", 1], number: 7)
            return try await resource(redis)?.limit == 9
        },
        Hazard(
            testDescription: "a repeated signal adds its permits once",
            safeguard: "if request_number == slot_number then return tonumber(",
            replacement: "if false then return tonumber("
        ) { nodes, redis in
            let node = try await nodes()
            for _ in 0..<2 { _ = try await node.request("signal", "s", ["sf", "0"], number: 1) }
            return try await resource(redis)?.free == 1
        },
        Hazard(
            testDescription: "a repeated acquire takes its permits once",
            safeguard: "if request_number == slot_number then if", replacement: "if false then if"
        ) { nodes, redis in
            let node = try await nodes()
            for _ in 0..<2 { _ = try await node.request("acquire", "s", ["sf", "5", "c"], number: 1) }
            return try await resource(redis)?.free == 4
        },
        Hazard(
            testDescription: "a request that arrives again after its slot served a later one has no effect",
            safeguard: "if request_number < slot_number then return {'stale'} end", replacement: ""
        ) { nodes, redis in
            let node = try await nodes()
            try await node.signal("s")
            _ = try await node.request("signal", "s", ["sf", "0"], slotOf: 1)
            let again = try await node.request("signal", "s", ["sf", "0"], number: 1)
            return try await resource(redis)?.free == 2 && again == ["stale"]
        },
        Hazard(
            testDescription: "a request does not take the slot of a waiter",
            safeguard: "if slot_state == 'w' then return {'occupied'} end", replacement: ""
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "0", "l"])
            _ = try await node.request("acquire", "t", ["sf", "1", "l"], slotOf: 1)
            return try await node.claim(1, redis) != nil
        },
        Hazard(
            testDescription: "a signal does not take the slot of a waiter",
            safeguard: "if slot_state == 'w' then return {'occupied'} end", replacement: ""
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "0", "l"])
            _ = try await node.request("signal", "t", ["sf", "0"], slotOf: 1)
            return try await node.claim(1, redis) != nil
        },
        Hazard(
            testDescription:
                "a request for a mutex does not take a slot that holds it, because Redis has lost the release",
            safeguard: "== holder or resource_family", replacement: "== '' or resource_family"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", lock)
            try await lose(redis) { _ = try await node.request("releaseMutex", "s", claim: 1) }
            return try await node.request("acquire", "s", lock, slotOf: 1) == ["occupied"]
        },
        Hazard(
            testDescription:
                "a request does not take a slot that holds another mutex, because Redis has lost the release",
            safeguard: "== holder or call('ZSCORE'", replacement: "== '' or call('ZSCORE'"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", lock)
            try await lose(redis) { _ = try await node.request("releaseMutex", "s", claim: 1) }
            return try await node.request("acquire", "t", lock, slotOf: 1) == ["occupied"]
        },
        Hazard(
            testDescription: "a request for a semaphore does not take a slot that has a lease of it",
            safeguard: "26, 26) ~= 'm' or", replacement: "26, 26) == '' or"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "1", "l"])
            return try await node.request("acquire", "s", ["sf", "1", "l"], slotOf: 1) == ["occupied"]
        },
        Hazard(
            testDescription: "a request that arrives after its cancel takes nothing",
            safeguard: "if number > claim_number and is_free then", replacement: "if false then"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("release", "s", number: 2, claim: 1)
            return try await node.request("acquire", "s", ["sf", "1", "l"], number: 1) == ["stale"]
        },
        Hazard(
            testDescription: "a request that arrives after its cancel takes nothing, in a slot that a mutex has used",
            safeguard: "is_free = not older or", replacement: "is_free = false and"
        ) { nodes, _ in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", lock)
            _ = try await node.request("releaseMutex", "s", claim: 1)
            _ = try await node.request("acquireInGroup", "t", member("g"))
            _ = try await node.request("releaseInGroup", "t", number: 5, claim: 4, slotOf: 1)
            return try await node.request("acquireInGroup", "t", member("g"), number: 4) == ["stale"]
        },
        Hazard(
            testDescription: "a release that arrives again does not end its slot's next claim",
            safeguard: "if claim_number ~= ending_claim_number or claim_state == 'd' then",
            replacement: "if claim_state == 'd' then"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "1", "l"])
            _ = try await node.request("release", "s", claim: 1)
            _ = try await node.request("acquire", "s", ["sf", "1", "l"], slotOf: 1)
            _ = try await node.request("release", "s", number: 2, claim: 1)
            return try await node.claim(3, redis)?.state == "h"
        },
        Hazard(
            testDescription: "a refused request confirms nothing",
            safeguard: "if if_free == '1' then return -1 end",
            replacement:
                "if if_free == '1' then call('HSET', partition_state, request_slot_field, struct.pack('<c1d', "
                + "'d', request_number)) return -1 end"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            _ = try await dying.request("acquire", "s", ["sf", "1", "c"])
            _ = try await dying.request("acquire", "t", ["sf", "0", "c", 1, "1"], slotOf: 1)
            try await dying.expire()
            _ = try await living.end("endPermits", "s", claim: 1, of: dying)
            return try await resource(redis)?.free == 1
        },
        Hazard(
            testDescription: "a refused request that is settled takes nothing when a copy of it arrives",
            safeguard: "call('HDEL', partition_state, '') call('HSET', partition_state, request_slot_field,",
            replacement: "local _ = ("
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "0", "c", 1, "1"], number: 1)
            _ = try await node.request("settleClaim", "", number: 1)
            try await nodes().signal("s")
            _ = try await node.request("acquire", "s", ["sf", "0", "c", 1, "1"], number: 1)
            return try await resource(redis)?.free == 1
        },
        Hazard(
            testDescription: "a refused signal that is settled adds nothing when a copy of it arrives",
            safeguard: "call('HDEL', partition_state, '') call('HSET', partition_state, request_slot_field,",
            replacement: "local _ = ("
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("signal", "s", ["sf", ""], number: 1)
            for _ in 0..<2 {
                guard try await node.request("settleCall", "", number: 1) == ["-1"] else { return false }
            }
            _ = try await nodes().request("create", "s", ["sf", "0"])
            _ = try await node.request("signal", "s", ["sf", ""], number: 1)
            return try await resource(redis)?.free == 0
        },
        Hazard(
            testDescription: "settling a request of which a copy was granted replies with the grant and keeps it",
            safeguard: "if request_number == slot_number then if", replacement: "if false then if"
        ) { nodes, redis in
            let node = try await nodes()
            let fence = try await node.request("acquire", "s", ["sf", "1", "l"], number: 1)
            let reply = try await node.request("settleClaim", "", number: 1)
            return try await node.claim(1, redis)?.state == "h" && reply.first == fence.first
        },
        Hazard(
            testDescription: "a session that leaves after it has settled a refused request leaves nothing behind",
            safeguard:
                "if slot_session_record then call('HSET', partition_state, slot_session_field, "
                + "slot_session_record) end return -1",
            replacement: "return -1"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "0", "c", 1, "1"], number: 1)
            _ = try await node.request("settleClaim", "", number: 1)
            _ = try await node.run("leave", [.string(node.session)])
            return try await Audit(redis).slots.isEmpty
        },
        Hazard(
            testDescription: "a confirmation that arrives late does not confirm its slot's next permit",
            safeguard: "slot_state == 'g' and slot_number == tonumber(number)", replacement: "slot_state == 'g'"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.request("acquire", "s", ["sf", "2", "c"])
            _ = try await node.request("acquire", "s", ["sf", "2", "c"], slotOf: 1)
            try await node.confirm(1)
            return try await node.claim(2, redis)?.state == "g"
        },
    ]
}
