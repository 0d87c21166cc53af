import Foundation
import Hiredis
@testable import RedisDC
import TestSupport
import Testing

/// A line of the scripts that prevents a fault, what replaces it, and a scenario that fails without
/// it.
struct Hazard: Sendable, CustomTestStringConvertible {
    typealias Nodes = @Sendable () async throws -> ForeignNode

    var testDescription: String
    /// The text in the scripts that prevents the fault.
    var safeguard: String
    /// The text that replaces it.
    var replacement: String
    /// Returns whether the fact in `testDescription` holds.
    var scenario: @Sendable (Nodes, RedisClient) async throws -> Bool
}

extension EngineTests {
    @Suite("Safeguards of the scripts")
    struct MutationTests {
        @Test("a fact holds with its safeguard and fails without it", arguments: hazards)
        func safeguard(_ hazard: Hazard) async throws {
            for isMutated in [false, true] {
                try await withServer { _, redis, _ in
                    let parts = try ForeignNode.parts().map { try ForeignNode.source($0) }
                    try #require(
                        parts.contains { $0.contains(hazard.safeguard) },
                        "the scripts do not contain \(hazard.safeguard)")
                    let holds = try await hazard.scenario(
                        {
                            try await ForeignNode(redis) { source in
                                guard isMutated else { return source }
                                return source.replacingOccurrences(of: hazard.safeguard, with: hazard.replacement)
                            }
                        }, redis)
                    #expect(holds != isMutated)
                }
            }
        }
    }
}

private func resource(_ redis: RedisClient) async throws -> Audit.Resource? { try await Audit(redis).resources["s"] }

private func member(_ group: RedisArgument) -> [RedisArgument] { ["mf", "1", "t", 1, "0", "1", group] }

private let lock: [RedisArgument] = ["mf", "1", "m"]

private func put(_ item: RedisArgument, _ node: ForeignNode) async throws {
    let place = try await node.number { _ = try await node.request("acquire", "s", ["kf", "5", "l"]) }
    _ = try await node.request("pass", "s#items", ["if", "0", "t:s", item], claim: place)
}

/// Undoes what `body` has written, like a failover to a replica that has not received it.
private func lose(_ redis: RedisClient, _ body: () async throws -> Void) async throws {
    let keys = ["book", "index", "sessions"].map { RedisArgument.string("rdc:{default:0}:\($0)") }
    var dumps: [[UInt8]?] = []
    for key in keys { dumps.append(try await redis.send("DUMP", key).bytes) }
    try await body()
    for (key, dump) in zip(keys, dumps) {
        if let dump {
            _ = try await redis.send("RESTORE", key, 0, .bytes(dump), "REPLACE")
        } else {
            _ = try await redis.send("DEL", key)
        }
    }
}

extension ForeignNode {
    /// Takes an item, and returns the number of the claim.
    fileprivate func takeItem() async throws -> Int {
        let claim = try await number { _ = try await request("acquire", "s#items", ["if", "0", "l"]) }
        _ = try await request("read", "s#items", claim: claim)
        return claim
    }

    /// Returns the claim that this request made, if it has not ended.
    fileprivate func claim(_ number: Int, _ redis: RedisClient) async throws -> Audit.Claim? {
        let id = await id(number)
        return try await Audit(redis).claims[id]
    }

    /// Sends as many arrivals at a barrier for `parties`.
    fileprivate func arrive(_ count: Int, _ policy: String = "bo", parties: RedisArgument) async throws {
        for _ in 0..<count { _ = try await request("arrive", "s", [.string(policy), parties, "a"]) }
    }
}

private let hazards: [Hazard] = [
    Hazard(
        testDescription: "a repeated resize does not undo another one in between",
        safeguard: "if number == slot_number then return tonumber(string.sub(slot, 10)) or 1 end", replacement: ""
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
        safeguard: "if number == slot_number then return tonumber(string.sub(slot, 10)) or 1 end", replacement: ""
    ) { nodes, redis in
        let node = try await nodes()
        for _ in 0..<2 { _ = try await node.request("signal", "s", ["sf", "0"], number: 1) }
        return try await resource(redis)?.free == 1
    },
    Hazard(
        testDescription: "a repeated acquire takes its permits once",
        safeguard: "if number == slot_number then\n", replacement: "if false then\n"
    ) { nodes, redis in
        let node = try await nodes()
        for _ in 0..<2 { _ = try await node.request("acquire", "s", ["sf", "5", "c"], number: 1) }
        return try await resource(redis)?.free == 4
    },
    Hazard(
        testDescription: "a request that arrives again after its slot served a later one has no effect",
        safeguard: "if number < slot_number then return {'stale'} end", replacement: ""
    ) { nodes, redis in
        let node = try await nodes()
        try await node.signal("s")
        _ = try await node.request("signal", "s", ["sf", "0"], slotOf: 1)
        let again = try await node.request("signal", "s", ["sf", "0"], number: 1)
        return try await resource(redis)?.free == 2 && again == ["stale"]
    },
    Hazard(
        testDescription: "a request does not take the slot of a waiter",
        safeguard: "if slot_state == WAITING then return {'occupied'} end", replacement: ""
    ) { nodes, redis in
        let node = try await nodes()
        _ = try await node.request("acquire", "s", ["sf", "0", "l"])
        _ = try await node.request("acquire", "t", ["sf", "1", "l"], slotOf: 1)
        return try await node.claim(1, redis) != nil
    },
    Hazard(
        testDescription: "a signal does not take the slot of a waiter",
        safeguard: "if slot_state == WAITING then return {'occupied'} end", replacement: ""
    ) { nodes, redis in
        let node = try await nodes()
        _ = try await node.request("acquire", "s", ["sf", "0", "l"])
        _ = try await node.request("signal", "t", ["sf", "0"], slotOf: 1)
        return try await node.claim(1, redis) != nil
    },
    Hazard(
        testDescription: "a request for a mutex does not take a slot that holds it, because Redis has lost the release",
        safeguard: "or string.sub(resource, TAIL) == holder\n", replacement: "\n"
    ) { nodes, redis in
        let node = try await nodes()
        _ = try await node.request("acquire", "s", lock)
        try await lose(redis) { _ = try await node.request("releaseMutex", "s", claim: 1) }
        return try await node.request("acquire", "s", lock, slotOf: 1) == ["occupied"]
    },
    Hazard(
        testDescription: "a request does not take a slot that holds another mutex, because Redis has lost the release",
        safeguard: "if held and (string.sub(held, TAIL) == holder", replacement: "if held and (false"
    ) { nodes, redis in
        let node = try await nodes()
        _ = try await node.request("acquire", "s", lock)
        try await lose(redis) { _ = try await node.request("releaseMutex", "s", claim: 1) }
        return try await node.request("acquire", "t", lock, slotOf: 1) == ["occupied"]
    },
    Hazard(
        testDescription: "a request for a semaphore does not take a slot that has a lease of it",
        safeguard: "string.sub(slot, 26, 26) ~= SOLE or string.sub(resource", replacement: "string.sub(resource"
    ) { nodes, _ in
        let node = try await nodes()
        _ = try await node.request("acquire", "s", ["sf", "1", "l"])
        return try await node.request("acquire", "s", ["sf", "1", "l"], slotOf: 1) == ["occupied"]
    },
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
        testDescription: "a request that arrives after its cancel takes nothing",
        safeguard: "call('HSET', state, slot_field, encode(SLOT, DONE, number))\n  end\n  return 0",
        replacement: "end\n  return 0"
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
        safeguard: "if slot_number ~= claim_number or claim_state == DONE then",
        replacement: "if claim_state == DONE then"
    ) { nodes, redis in
        let node = try await nodes()
        _ = try await node.request("acquire", "s", ["sf", "1", "l"])
        _ = try await node.request("release", "s", claim: 1)
        _ = try await node.request("acquire", "s", ["sf", "1", "l"], slotOf: 1)
        _ = try await node.request("release", "s", number: 2, claim: 1)
        return try await node.claim(3, redis)?.state == "h"
    },
    Hazard(
        testDescription: "an unconfirmed permit of a dead session is returned",
        safeguard: "free, grants_wanted = free + count, true\n    if claim_state == GRANTED",
        replacement: "if claim_state == GRANTED"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(), try await nodes())
        _ = try await dying.request("acquire", "s", ["sf", "1", "c"])
        try await dying.expire()
        _ = try await living.end("endPermits", "s", claim: 1, of: dying)
        return try await resource(redis)?.free == 1
    },
    Hazard(
        testDescription: "a confirmed permit of a dead session is not returned",
        safeguard: "call('HSET', state, slot_field, encode(SLOT, DONE, slot_number))", replacement: ""
    ) { nodes, redis in
        let (dying, living) = (try await nodes(), try await nodes())
        _ = try await dying.request("acquire", "s", ["sf", "1", "c"])
        try await dying.confirm(1)
        try await dying.expire()
        _ = try await living.end("endPermits", "s", claim: 1, of: dying)
        return try await resource(redis)?.free == 0
    },
    Hazard(
        testDescription: "a refused request confirms nothing",
        safeguard: "  if ARGV[8] == '1' then return -1 end\nend",
        replacement: "end\nif not passes and ARGV[8] == '1' then\n  call('HSET', state, slot_field, encode(SLOT, DONE, "
            + "number))\n  return -1\nend"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(), try await nodes())
        _ = try await dying.request("acquire", "s", ["sf", "1", "c"])
        _ = try await dying.request("acquire", "t", ["sf", "0", "c", 1, "1"], slotOf: 1)
        try await dying.expire()
        _ = try await living.end("endPermits", "s", claim: 1, of: dying)
        return try await resource(redis)?.free == 1
    },
    Hazard(
        testDescription: "a confirmation that arrives late does not confirm its slot's next permit",
        safeguard: "slot_state == GRANTED and slot_number == tonumber(number)", replacement: "slot_state == GRANTED"
    ) { nodes, redis in
        let node = try await nodes()
        _ = try await node.request("acquire", "s", ["sf", "2", "c"])
        _ = try await node.request("acquire", "s", ["sf", "2", "c"], slotOf: 1)
        try await node.confirm(1)
        return try await node.claim(2, redis)?.state == "g"
    },
    Hazard(
        testDescription: "the sweep of an expired session finds a claim that has reused a slot since",
        safeguard: "if slot_number == claim_number and ARGV[2] == '' then",
        replacement: "if slot and ARGV[2] == '' then"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(), try await nodes())
        _ = try await dying.request("acquire", "s", ["sf", "2", "c"])
        try await dying.expire()
        _ = try await dying.request("acquire", "s", ["sf", "2", "l"], slotOf: 1)
        _ = try await living.end("endPermits", "s", claim: 1, of: dying)
        let id = await dying.id(2)
        return try await living.run("sweep", [.string(dying.session), ""]).contains(id)
    },
    Hazard(
        testDescription: "the sweep of an expired session finds its claims",
        safeguard: "if slots_used > slots then session_record", replacement: "if false then session_record"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(), try await nodes())
        _ = try await dying.request("acquire", "s", ["sf", "1", "c"])
        try await dying.expire()
        let id = await dying.id(1)
        return try await living.run("sweep", [.string(dying.session), ""]).contains(id)
    },
    Hazard(
        testDescription: "a heartbeat finds that Redis has lost the end of the history",
        safeguard: "if slot_number < tonumber(ARGV[4]) then\n    is_data_lost = 1",
        replacement: "if slot_number < tonumber(ARGV[4]) then"
    ) { nodes, redis in
        let node = try await nodes()
        try await lose(redis) { try await node.signal("s") }
        return try await node.run("heartbeat", [.string(node.session), 60_000_000, 0, 1])[2] == "1"
    },
    Hazard(
        testDescription: "a heartbeat finds that Redis has lost the release of a mutex",
        safeguard: "if not is_ended then is_data_lost = 1 end", replacement: ""
    ) { nodes, redis in
        let node = try await nodes()
        let claim = try await node.number { _ = try await node.request("acquire", "s", lock) }
        let arguments: [RedisArgument] = [.string(node.session), 60_000_000, 0, .integer(claim), "1"]
        var isLost: [Bool] = []
        try await lose(redis) {
            _ = try await node.request("releaseMutex", "s", claim: claim)
            isLost.append(try await node.run("heartbeat", arguments)[2] == "1")
        }
        isLost.append(try await node.run("heartbeat", arguments)[2] == "1")
        return isLost == [false, true]
    },
    Hazard(
        testDescription: "the end of a claim that Redis has lost does not hide an older claim in the same slot",
        safeguard: "if is_sole and not is_free then\n",
        replacement: "if is_sole then is_free = true elseif false then\n"
    ) { nodes, redis in
        let node = try await nodes()
        let first = try await node.number { _ = try await node.request("acquire", "s", lock) }
        try await lose(redis) {
            _ = try await node.request("releaseMutex", "s", claim: first)
            _ = try await node.request("acquire", "s", lock, number: 7, slotOf: first)
        }
        // The node ends the claim that it had, and then finds the older one.
        _ = try await node.request("releaseMutex", "s", number: 8, claim: 7)
        return try await node.run("claims", [.string(node.session), 0]).contains("h")
    },
    Hazard(
        testDescription: "notices begin anew with each connection, so that hints show where they come from",
        safeguard: "if not (notices >= first_notice and notices < MAX_TICK) then notices = first_notice end",
        replacement: ""
    ) { nodes, redis in
        let (node, other) = (try await nodes(), try await nodes())
        let heartbeat: [RedisArgument] = [.string(node.session), 60_000_000, "", "", "", "0"]
        let before = try await node.run("heartbeat", heartbeat + [3])[1]
        _ = try await node.acquire("s")
        let message = try await redis.firstMessage(to: node) { try await other.signal("s") }
        // A heartbeat of an earlier connection arrives late.
        let after = try await node.run("heartbeat", heartbeat + [2])[1]
        return [before, message, after] == ["\(3 << 32)", "\(3 << 32 + 1) 1 1", "\(3 << 32 + 1)"]
    },
    Hazard(
        testDescription: "fences are higher than the highest that a session has seen, whatever time it is",
        safeguard: "call('HSET', state, 'clock', encode(NUMBER, math.max(tick, fence)))", replacement: ""
    ) { nodes, redis in
        let node = try await nodes()
        let time = try await redis.send("TIME").array?.first?.string.flatMap { Int($0) } ?? 0
        let inAnHour = (time + 3600) * 1_000_000
        _ = try await node.run("heartbeat", [.string(node.session), 60_000_000, "", "", "", .integer(inAnHour)])
        return try await Int(node.request("acquire", "s", lock)[0])! > inAnHour
    },
    Hazard(
        testDescription: "a fence that is more than a day ahead is not believed",
        safeguard: "if fence > now + 86400000000 then fence = 0 end", replacement: ""
    ) { nodes, redis in
        let node = try await nodes()
        _ = try await node.run("heartbeat", [.string(node.session), 60_000_000, "", "", "", .integer(1 << 52)])
        return try await Int(node.request("acquire", "s", lock)[0])! < 1 << 52
    },
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
        testDescription: "what a session with a corrupt record held is swept",
        safeguard: "local is_found = true\n  while is_found do",
        replacement: "local is_found = false\n  while is_found do"
    ) { nodes, redis in
        let (corrupt, other) = (try await nodes(), try await nodes())
        _ = try await corrupt.request("acquire", "s", lock)
        _ = try await redis.send("HSET", "rdc:{default:0}:book", .string("s:\(corrupt.session)"), "x")
        return try await other.run("sweep", [.string(corrupt.session), ""]).contains("\(corrupt.session):0:1")
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
        testDescription: "only the holder releases a mutex",
        safeguard: "string.sub(named, TAIL) == string.sub(ARGV[1], 3) .. ':' .. ARGV[4]", replacement: "true"
    ) { nodes, redis in
        let (one, two) = (try await nodes(), try await nodes())
        _ = try await one.request("acquire", "s", lock)
        _ = try await two.request("releaseMutex", "s", number: 2, claim: 1)
        return try await resource(redis) != nil
    },
    Hazard(
        testDescription: "a mutex is released to its first waiter",
        safeguard: "string.sub(named, 1, 11) == MUTEX_WITHOUT_WAITERS\n  and ", replacement: ""
    ) { nodes, redis in
        let (one, two) = (try await nodes(), try await nodes())
        _ = try await one.request("acquire", "s", lock)
        _ = try await two.request("acquire", "s", lock)
        _ = try await one.request("releaseMutex", "s", claim: 1)
        return try await two.claim(1, redis)?.state == "h"
    },
    Hazard(
        testDescription: "a release of a mutex that arrives again does not end the next holder's claim",
        safeguard: "claim_state = DONE\n  -- If groups", replacement: "-- If groups"
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
        safeguard: "claim_state = DONE\n  -- If groups", replacement: "-- If groups"
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
        safeguard: "call('ZREM', index, HOLDER_LINE .. name .. '\\0' .. claim_id)\nend", replacement: "end"
    ) { nodes, redis in
        let node = try await nodes()
        _ = try await node.request("acquireInGroup", "s", lock)
        _ = try await node.request("destroy", "s", ["mf"])
        _ = try await node.request("releaseMutex", "s", claim: 1)
        return try await Audit(redis).lines.isEmpty
    },
    Hazard(
        testDescription: "another session cannot release the claim of a living session",
        safeguard: "if decode(NUMBER, session) > time[1] * 1000000 + time[2] then return {'alive'} end", replacement: ""
    ) { nodes, redis in
        let (one, two) = (try await nodes(), try await nodes())
        _ = try await one.request("acquire", "s", ["sf", "1", "l"])
        _ = try await two.end("endPermits", "s", claim: 1, of: one)
        return try await resource(redis)?.free == 0
    },
    Hazard(
        testDescription: "an expired session is refused",
        safeguard: "if expires <= now then return {'lost', 'ended'} end", replacement: ""
    ) { nodes, redis in
        let node = try await nodes()
        try await node.expire()
        return try await node.request("acquire", "s", ["sf", "1", "l"]).first == "lost"
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
    Hazard(
        testDescription: "dead waiters do not open a barrier",
        safeguard: "session and #session == SESSION_SIZE and decode(NUMBER, session) > now or false",
        replacement: "true"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(), try await nodes())
        try await dying.arrive(1, parties: "2")
        try await dying.expire()
        try await living.arrive(1, parties: "2")
        return try await resource(redis)?.signalled == 0
    },
    Hazard(
        testDescription: "a barrier that a death breaks does not open when enough others arrive before the sweep",
        safeguard: "if #dead > 0 and kind == BARRIER_BROKEN_BY_LEAVING then", replacement: "if false then"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(), try await nodes())
        try await dying.arrive(1, "bb", parties: "2")
        try await dying.expire()
        try await living.arrive(2, "bb", parties: "2")
        return try await resource(redis)?.signalled == 0
    },
    Hazard(
        testDescription: "an id that counts a latch down after it has opened leaves nothing",
        safeguard: "if signalled < limit then", replacement: "if true then"
    ) { nodes, redis in
        let node = try await nodes()
        for id in ["a", "b"] { _ = try await node.request("countDown", "s", ["ld", "1", .string(id)]) }
        return try await redis.send("ZRANGEBYLEX", "rdc:{default:0}:index", "[d", "(e").array?.count == 1
    },
    Hazard(
        testDescription: "a party that passed a barrier cannot leave it afterwards",
        safeguard: "elseif ARGV[5] == 'w' then", replacement: "elseif false then"
    ) { nodes, _ in
        let node = try await nodes()
        try await node.arrive(2, parties: "2")
        return try await node.request("releaseParty", "s", ["w"], claim: 1).count == 2
    },
    Hazard(
        testDescription: "an open generation of a barrier takes no later arrivals",
        safeguard: "or string.sub(line, tick_at, tick_at + 7) > tail then break end", replacement: "then break end"
    ) { nodes, redis in
        let node = try await nodes()
        // One script grants 128. A party whose line is gone cannot be granted, and its place stays empty.
        try await node.arrive(130, parties: "130")
        let lines = try await Audit(redis).lines.filter { $0[0] == UInt8(ascii: "q") }
        _ = try await redis.send("ZREM", "rdc:{default:0}:index", .bytes(try #require(lines.first)))
        try await node.arrive(1, parties: "130")
        return try await node.claim(131, redis)?.state == "w"
    },
    Hazard(
        testDescription: "a party of an open generation that is not granted yet cannot leave",
        safeguard: "if ARGV[5] == 'w' then return {'again'} end", replacement: ""
    ) { nodes, _ in
        let node = try await nodes()
        try await node.arrive(130, parties: "130")
        return try await node.request("releaseParty", "s", ["w"], claim: 130) == ["again"]
    },
    Hazard(
        testDescription: "a party that arrived after an open generation can leave",
        safeguard: "queue_tick <= tail and ", replacement: ""
    ) { nodes, _ in
        let node = try await nodes()
        try await node.arrive(301, parties: "300")
        return try await node.request("releaseParty", "s", ["w"], claim: 301).first != "again"
    },
    Hazard(
        testDescription: "a party that dies after its generation opened does not break the barrier",
        safeguard: "and not has_passed then", replacement: "then"
    ) { nodes, redis in
        let node = try await nodes()
        try await node.arrive(130, "bb", parties: "130")
        _ = try await node.request("releaseParty", "s", claim: 130)
        return try await node.claim(129, redis)?.state == "g"
    },
    Hazard(
        testDescription: "an ID counts down a latch once",
        safeguard: "if is_first then", replacement: "if true then"
    ) { nodes, _ in
        let node = try await nodes()
        for _ in 0..<2 { _ = try await node.request("countDown", "s", ["ld", "2", "me"]) }
        return try await node.request("waitForLatch", "s", ["ld", "2", "c", 1, "1"]) == ["-1"]
    },
    Hazard(
        testDescription: "a repeated countdown counts once",
        safeguard: "if number == slot_number then return tonumber(string.sub(slot, 10)) or 1 end", replacement: ""
    ) { nodes, redis in
        let node = try await nodes()
        for _ in 0..<2 { _ = try await node.request("countDown", "s", ["ld", "3", ""], number: 1) }
        return try await resource(redis)?.signalled == 1
    },
    Hazard(
        testDescription: "a repeated countdown gets the same answer",
        safeguard: "{slot_field, encode(SLOT, DONE, number) .. reply}",
        replacement: "{slot_field, encode(SLOT, DONE, number)}"
    ) { nodes, _ in
        let node = try await nodes()
        for _ in 0..<2 { _ = try await node.request("countDown", "s", ["ld", "3", ""]) }
        return try await node.request("countDown", "s", ["ld", "3", ""], number: 1) == ["2"]
    },
    Hazard(
        testDescription: "the death of a participant breaks a latch with that policy",
        safeguard: "if by_other and kind == LATCH_BROKEN_BY_DEATH then", replacement: "if false then"
    ) { nodes, redis in
        let (dying, living) = (try await nodes(), try await nodes())
        _ = try await dying.request("participate", "s", ["lf", "1", "p"])
        try await dying.expire()
        _ = try await living.end("endParticipant", "s", claim: 1, of: dying)
        return try await living.request("waitForLatch", "s", ["lf", "1", "c", 1, "1"]) == ["broken"]
    },
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
        safeguard: "if slot_state ~= HELD or slot_number ~= tonumber(ARGV[6]) then return {'none'} end", replacement: ""
    ) { nodes, _ in
        let node = try await nodes()
        for _ in 0..<2 { _ = try await node.request("acquire", "s", ["kf", "1", "l"]) }
        return try await node.request("pass", "s#items", ["if", "0", "t:s", "x"], claim: 2) == ["none"]
    },
    Hazard(
        testDescription: "a meeting is kept until all parties have read it",
        safeguard: "if unread > 1 then", replacement: "if false then"
    ) { nodes, redis in
        let node = try await nodes()
        for value in ["x", "y"] { _ = try await node.request("arrive", "s", ["eo", "2", "e", .string(value)]) }
        _ = try await node.request("releaseParty", "s", claim: 1)
        return try await Audit(redis).meetings.count == 1
    },
    Hazard(
        testDescription: "fences after a cohort's release are higher than those that it has used",
        safeguard: "tonumber(ARGV[5] or signalled)", replacement: "0"
    ) { nodes, _ in
        let node = try await nodes()
        let fence = try await node.fenceOfCohort()
        _ = try await node.request("release", "s", [.integer(fence + 1_000_000)], claim: 1)
        return try await Int(node.request("acquire", "s", lock)[0])! > fence + 1_000_000
    },
    Hazard(
        testDescription: "fences after a forced release are higher than those that a cohort has reserved",
        safeguard: "tonumber(ARGV[5] or signalled)", replacement: "tonumber(ARGV[5] or 0)"
    ) { nodes, _ in
        let node = try await nodes()
        let fence = try await node.fenceOfCohort()
        _ = try await node.end("endPermits", "s", claim: 1, of: node, word: "lost")
        return try await Int(node.request("acquire", "s", lock)[0])! >= fence + cohortFences
    },
    Hazard(
        testDescription: "fences of a mutex that groups begin to use are higher than those that a cohort has reserved",
        safeguard: "tick = math.max(fences_used, decode(", replacement: "tick = math.max(0, decode("
    ) { nodes, redis in
        let node = try await nodes()
        let fence = try await node.fenceOfCohort()
        let claim = try await node.number { _ = try await node.request("acquireInGroup", "s", member("g")) }
        _ = try await node.request("releaseInGroup", "s", claim: 1)
        return try await Int(node.claim(claim, redis)!.tick) >= fence + cohortFences
    },
    Hazard(
        testDescription: "fences of a new mutex are higher than those that a cohort of a destroyed one has reserved",
        safeguard: "tick, signalled = math.max(signalled, decode(NUMBER, call('HGET', state, 'clock') or NEVER)), 0",
        replacement: "signalled = 0"
    ) { nodes, _ in
        let node = try await nodes()
        let fence = try await node.fenceOfCohort()
        _ = try await node.request("destroy", "s", ["mf"])
        return try await Int(node.request("acquire", "s", lock)[0])! >= fence + cohortFences
    },
    Hazard(
        testDescription: "a cohort reserves fences beyond those that it has used",
        safeguard: "math.max(signalled, ARGV[5] + FENCES)", replacement: "signalled"
    ) { nodes, _ in
        let node = try await nodes()
        let fence = try await node.fenceOfCohort()
        let used = fence + 1_000_000
        return try await Int(node.request("extendFences", "s", [.integer(used)], claim: 1)[0])! >= used + cohortFences
    },
    Hazard(
        testDescription: "only the holder reserves fences",
        safeguard: "~= string.sub(ARGV[1], 3) .. ':' .. ARGV[4] then return {'none'} end",
        replacement: "== '' then return {'none'} end"
    ) { nodes, _ in
        let (node, other) = (try await nodes(), try await nodes())
        _ = try await node.fenceOfCohort()
        _ = try await node.request("release", "s", [1], claim: 1)
        _ = try await other.fenceOfCohort()
        return try await node.request("extendFences", "s", [1], claim: 1) == ["none"]
    },
    Hazard(
        testDescription: "who waits for a cohort's mutex recalls it",
        safeguard: "if kind == MUTEX and signalled > 0 and waiting == 0 then", replacement: "if false then"
    ) { nodes, redis in
        let node = try await nodes()
        return try await redis.firstMessage(to: node) {
            _ = try await node.fenceOfCohort()
            _ = try await nodes().request("acquire", "s", lock)
        } == "0 1 recall"
    },
    Hazard(
        testDescription: "who makes one attempt at a cohort's mutex recalls it",
        safeguard: "if kind == MUTEX and signalled > 0 and waiting == 0 then", replacement: "if false then"
    ) { nodes, redis in
        let node = try await nodes()
        return try await redis.firstMessage(to: node) {
            _ = try await node.fenceOfCohort()
            _ = try await nodes().request("acquire", "s", lock + [1, "1"])
        } == "0 1 recall"
    },
    Hazard(
        testDescription: "a group that waits for a cohort's mutex recalls it",
        safeguard: "local wakeups = recall", replacement: "local wakeups"
    ) { nodes, redis in
        let node = try await nodes()
        return try await redis.firstMessage(to: node) {
            _ = try await node.fenceOfCohort()
            _ = try await nodes().request("acquireInGroup", "s", member("g"))
        } == "0 1 recall"
    },
    Hazard(
        testDescription: "a cohort learns with the grant that others wait behind it",
        safeguard: "(waiting > 0 and '/2' or '/1')", replacement: "'/1'"
    ) { nodes, redis in
        let (node, holder) = (try await nodes(), try await nodes())
        return try await redis.firstMessage(to: node) {
            _ = try await holder.request("acquire", "s", lock)
            _ = try await node.request("acquire", "s", ["mf", "1", "k"])
            _ = try await nodes().request("acquire", "s", lock)
            _ = try await holder.request("releaseMutex", "s", claim: 1)
        }.hasSuffix("/2")
    },
]

private let cohortFences = Int(CohortStateMachine.fences)

extension ForeignNode {
    /// Acquires the mutex `s` for a cohort by the first request, and returns the fence.
    fileprivate func fenceOfCohort() async throws -> Int {
        let reply = try await request("acquire", "s", ["mf", "1", "k"])
        try #require(reply.count == 2 && reply[1] == "1")
        return Int(reply[0])!
    }
}

extension RedisClient {
    /// Returns the first message on a node's channel during `body`, or an empty text.
    fileprivate func firstMessage(to node: ForeignNode, _ body: () async throws -> Void) async throws -> String {
        try await withSubscription(to: [node.channel]) { events in
            try await body()
            _ = try await publish("", to: node.channel)
            guard case .message(let message)? = try await events.next() else { return "" }
            return String(decoding: message.payload, as: UTF8.self)
        }
    }
}
