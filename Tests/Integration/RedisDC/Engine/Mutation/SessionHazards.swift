// Facts of sessions: heartbeats, sweeping, confirmations, notices and fences.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    static let sessions: [Hazard] = [
        Hazard(
            testDescription: "an unconfirmed permit of a dead session is returned",
            safeguard: "resource_free, has_freed = resource_free + claim_count, true if claim_state == 'g'",
            replacement: "if claim_state == 'g'"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            _ = try await dying.request("acquire", "s", ["sf", "1", "c"])
            try await dying.expire()
            _ = try await living.end("endPermits", "s", claim: 1, of: dying)
            return try await resource(redis)?.free == 1
        },
        Hazard(
            testDescription: "a confirmed permit of a dead session is not returned",
            safeguard: "if slot_state == 'g' and slot_number", replacement: "if false and slot_number"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            _ = try await dying.request("acquire", "s", ["sf", "1", "c"])
            try await dying.confirm(1)
            try await dying.expire()
            _ = try await living.end("endPermits", "s", claim: 1, of: dying)
            return try await resource(redis)?.free == 0
        },
        Hazard(
            testDescription: "the sweep of an expired session finds a claim that has reused a slot since",
            safeguard: "if claim_number == ending_claim_number and ending_word == '' then",
            replacement: "if ending_stored and ending_word == '' then"
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
            safeguard: "if slots_used > session_slots then", replacement: "if false then"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            _ = try await dying.request("acquire", "s", ["sf", "1", "c"])
            try await dying.expire()
            let id = await dying.id(1)
            return try await living.run("sweep", [.string(dying.session), ""]).contains(id)
        },
        Hazard(
            testDescription: "a session that is alive is not handed out for a sweep",
            safeguard: "'%d', now), 'LIMIT'", replacement: "'%d', now + 1e15), 'LIMIT'"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            return try await !living.run("heartbeat", [.string(living.session), 60_000_000, ""])
                .contains(dying.session)
        },
        Hazard(
            testDescription: "1,000 names whose rechecks fail do not keep a later one from being rechecked",
            safeguard: "'(t' .. rechecked", replacement: "'(t'"
        ) { nodes, redis in
            let node = try await nodes()
            let names = (0..<1000).map { "damaged\($0)" } + ["sound"]
            let lines = names.flatMap { [RedisArgument.integer(0), .string("t\($0)")] }
            _ = try await redis.send(RedisCommand(["ZADD", "rdc:{default:0}:index"] + lines))
            var found: Set<String> = []
            // 16 names with each heartbeat, twice around.
            for heartbeat in 1...126 {
                found.formUnion(try await node.run("heartbeat", [.string(node.session), 60_000_000, ""]))
                if heartbeat == 63, !found.isSuperset(of: names) { return false }
                if heartbeat == 63 { found = [] }
            }
            return found.isSuperset(of: names)
        },
        Hazard(
            testDescription: "a heartbeat finds that Redis has lost the end of the history",
            safeguard: "is_data_lost = slot_number < number", replacement: "is_data_lost = false"
        ) { nodes, redis in
            let node = try await nodes()
            try await lose(redis) { try await node.signal("s") }
            return try await node.run("heartbeat", [.string(node.session), 60_000_000, 0, 1])[2] == "1"
        },
        Hazard(
            testDescription: "a heartbeat finds that Redis has lost the release of a mutex",
            safeguard: "is_data_lost = not has_ended", replacement: "is_data_lost = false"
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
            safeguard: "if is_sole and not is_free then",
            replacement: "if is_sole then is_free = true elseif false then"
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
            testDescription: "each connection has its own notices: wake-ups show for which one they were counted",
            safeguard: "session_notices = first_notice", replacement: ""
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
            safeguard: "if not (tick >= fence and tick < 9007199254740992) then", replacement: "if false then"
        ) { nodes, redis in
            let node = try await nodes()
            let time = try await redis.send("TIME").array?.first?.string.flatMap { Int($0) } ?? 0
            let inAnHour = (time + 3600) * 1_000_000
            _ = try await node.run("heartbeat", [.string(node.session), 60_000_000, "", "", "", .integer(inAnHour)])
            return try await Int(node.request("acquire", "s", lock)[0])! > inAnHour
        },
        Hazard(
            testDescription: "a fence that is more than a day ahead is not believed",
            safeguard: "if fence > now + 86400000000 then", replacement: "if false then"
        ) { nodes, redis in
            let node = try await nodes()
            _ = try await node.run("heartbeat", [.string(node.session), 60_000_000, "", "", "", .integer(1 << 52)])
            return try await Int(node.request("acquire", "s", lock)[0])! < 1 << 52
        },
        Hazard(
            testDescription: "what a session with a corrupt record held is swept",
            safeguard: "session_slots = stop", replacement: "session_notices = 0"
        ) { nodes, redis in
            let (corrupt, other) = (try await nodes(), try await nodes())
            _ = try await corrupt.request("acquire", "s", lock)
            _ = try await redis.send("HSET", "rdc:{default:0}:book", .string("s:\(corrupt.session)"), "x")
            return try await other.run("sweep", [.string(corrupt.session), ""]).contains("\(corrupt.session):0:1")
        },
        Hazard(
            testDescription: "another session cannot release the claim of a living session",
            safeguard: "if ending_word == '' and ending_session and", replacement: "if false and"
        ) { nodes, redis in
            let (one, two) = (try await nodes(), try await nodes())
            _ = try await one.request("acquire", "s", ["sf", "1", "l"])
            _ = try await two.end("endPermits", "s", claim: 1, of: one)
            return try await resource(redis)?.free == 0
        },
        Hazard(
            testDescription: "a process learns that its session was swept, and not lost",
            safeguard: "call('HSET', partition_state, 'swept'", replacement: "call('HSET', partition_state, 'clock'"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            try await dying.expire()
            _ = try await living.run("sweep", [.string(dying.session), ""])
            return try await living.mayHaveExpired(dying.session)
        },
        Hazard(
            testDescription: "a process learns that its session has expired, before others sweep it",
            safeguard: "if stored_2[1] then", replacement: "if false then"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            try await dying.expire()
            return try await living.mayHaveExpired(dying.session)
        },
        Hazard(
            testDescription: "after many sweeps, a session that is not listed may be one of them, but not for ever",
            safeguard: "has_expired = not is_complete", replacement: "has_expired = false"
        ) { nodes, redis in
            let living = try await nodes()
            guard try await !living.mayHaveExpired("unknown") else { return false }
            for number in 0..<400 {
                if number.isMultiple(of: 50) { try await living.heartbeat() }
                let dying = try await nodes()
                try await dying.expire()
                _ = try await living.run("sweep", [.string(dying.session), ""])
            }
            let swept = try await redis.send("HGET", "rdc:{default:0}:book", "swept").string ?? ""
            guard swept.utf8.count < 4100, try await living.mayHaveExpired("unknown") else { return false }
            // A minute later.
            let parts = swept.split(separator: " ", maxSplits: 1)
            let earlier = "\(Int(parts[0])! - 60_000_001) \(parts[1])"
            _ = try await redis.send("HSET", "rdc:{default:0}:book", "swept", .string(earlier))
            let last = parts[1].split(separator: " ").last!.split(separator: ":")[0]
            let (unknown, known) = (
                try await living.mayHaveExpired("unknown"), try await living.mayHaveExpired(String(last))
            )
            return !unknown && known
        },
        Hazard(
            testDescription: "an expired session is refused",
            safeguard: "if session_expires <= clock_now then", replacement: "if false then"
        ) { nodes, redis in
            let node = try await nodes()
            try await node.expire()
            return try await node.request("acquire", "s", ["sf", "1", "l"]).first == "lost"
        },
    ]
}
