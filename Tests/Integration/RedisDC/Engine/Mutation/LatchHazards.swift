// Facts of latches: latches.lua.
import Hiredis
import TestSupport

@testable import RedisDCTestSupport

extension Hazard {
    static let latches: [Hazard] = [
        Hazard(
            testDescription: "an id that counts a latch down after it has opened leaves nothing",
            safeguard: "if resource_signalled < resource_limit then", replacement: "if true then"
        ) { nodes, redis in
            let node = try await nodes()
            for id in ["a", "b"] { _ = try await node.request("countDown", "s", ["ld", "1", .string(id)]) }
            return try await redis.send("ZRANGEBYLEX", "rdc:{default:0}:index", "[d", "(e").array?.count == 1
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
            safeguard: "if request_number == slot_number then return tonumber(",
            replacement: "if false then return tonumber("
        ) { nodes, redis in
            let node = try await nodes()
            for _ in 0..<2 { _ = try await node.request("countDown", "s", ["ld", "3", ""], number: 1) }
            return try await resource(redis)?.signalled == 1
        },
        Hazard(
            testDescription: "a repeated countdown gets the same answer",
            safeguard: "request_number) .. reply}", replacement: "request_number)}"
        ) { nodes, _ in
            let node = try await nodes()
            for _ in 0..<2 { _ = try await node.request("countDown", "s", ["ld", "3", ""]) }
            return try await node.request("countDown", "s", ["ld", "3", ""], number: 1) == ["2"]
        },
        Hazard(
            testDescription: "the death of a participant breaks a latch with that policy",
            safeguard: "if ending_by_other and resource_kind == 'lf' then", replacement: "if false then"
        ) { nodes, redis in
            let (dying, living) = (try await nodes(), try await nodes())
            _ = try await dying.request("participate", "s", ["lf", "1", "p"])
            try await dying.expire()
            _ = try await living.end("endParticipant", "s", claim: 1, of: dying)
            return try await living.request("waitForLatch", "s", ["lf", "1", "c", 1, "1"]) == ["broken"]
        },
    ]
}
