// Facts of mutexes that a cohort holds: its fences and its recall.
import Hiredis
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

extension Hazard {
    static let cohorts: [Hazard] = [
        Hazard(
            testDescription: "fences after a cohort's release are higher than those that it has used",
            safeguard: "tonumber(used or resource_signalled)", replacement: "0"
        ) { nodes, _ in
            let node = try await nodes()
            let fence = try await node.fenceOfCohort()
            _ = try await node.request("release", "s", [.integer(fence + 1_000_000)], claim: 1)
            return try await Int(node.request("acquire", "s", lock)[0])! > fence + 1_000_000
        },
        Hazard(
            testDescription: "fences after a forced release are higher than those that a cohort has reserved",
            safeguard: "tonumber(used or resource_signalled)", replacement: "tonumber(used or 0)"
        ) { nodes, _ in
            let node = try await nodes()
            let fence = try await node.fenceOfCohort()
            _ = try await node.end("endPermits", "s", claim: 1, of: node, word: "lost")
            return try await Int(node.request("acquire", "s", lock)[0])! >= fence + cohortFences
        },
        Hazard(
            testDescription:
                "fences of a mutex that groups begin to use are higher than those that a cohort has reserved",
            safeguard: "fences_used, last) + 1", replacement: "0, last) + 1"
        ) { nodes, redis in
            let node = try await nodes()
            let fence = try await node.fenceOfCohort()
            let claim = try await node.number { _ = try await node.request("acquireInGroup", "s", member("g")) }
            _ = try await node.request("releaseInGroup", "s", claim: 1)
            return try await Int(node.claim(claim, redis)!.tick) >= fence + cohortFences
        },
        Hazard(
            testDescription:
                "fences of a new mutex are higher than those that a cohort of a destroyed one has reserved",
            safeguard: "if resource_kind == 'mf' and resource_signalled > 0 then", replacement: "if false then"
        ) { nodes, _ in
            let node = try await nodes()
            let fence = try await node.fenceOfCohort()
            _ = try await node.request("destroy", "s", ["mf"])
            return try await Int(node.request("acquire", "s", lock)[0])! >= fence + cohortFences
        },
        Hazard(
            testDescription: "a cohort reserves fences beyond those that it has used",
            safeguard: ", arguments[5] + 1048576)", replacement: ", 0)"
        ) { nodes, _ in
            let node = try await nodes()
            let fence = try await node.fenceOfCohort()
            let used = fence + 1_000_000
            return try await Int(node.request("extendFences", "s", [.integer(used)], claim: 1)[0])! >= used
                + cohortFences
        },
        Hazard(
            testDescription: "only the holder reserves fences",
            safeguard: ".. arguments[4] then return {'none'} end",
            replacement: ".. arguments[4] and false then return {'none'} end"
        ) { nodes, _ in
            let (node, other) = (try await nodes(), try await nodes())
            _ = try await node.fenceOfCohort()
            _ = try await node.request("release", "s", [1], claim: 1)
            _ = try await other.fenceOfCohort()
            return try await node.request("extendFences", "s", [1], claim: 1) == ["none"]
        },
        Hazard(
            testDescription: "who waits for a cohort's mutex recalls it",
            safeguard: "if resource_kind == 'mf' and resource_signalled > 0 and resource_waiting == 0 then",
            replacement: "if false then"
        ) { nodes, redis in
            let node = try await nodes()
            return try await redis.firstMessage(to: node) {
                _ = try await node.fenceOfCohort()
                _ = try await nodes().request("acquire", "s", lock)
            } == "0 1 recall"
        },
        Hazard(
            testDescription: "who makes one attempt at a cohort's mutex recalls it",
            safeguard: "if resource_kind == 'mf' and resource_signalled > 0 and resource_waiting == 0 then",
            replacement: "if false then"
        ) { nodes, redis in
            let node = try await nodes()
            return try await redis.firstMessage(to: node) {
                _ = try await node.fenceOfCohort()
                _ = try await nodes().request("acquire", "s", lock + [1, "1"])
            } == "0 1 recall"
        },
        Hazard(
            testDescription: "a group that waits for a cohort's mutex recalls it",
            safeguard: "writes_wakeups = {[sid] = number .. ' recall'}", replacement: ""
        ) { nodes, redis in
            let node = try await nodes()
            return try await redis.firstMessage(to: node) {
                _ = try await node.fenceOfCohort()
                _ = try await nodes().request("acquireInGroup", "s", member("g"))
            } == "0 1 recall"
        },
        Hazard(
            testDescription: "a cohort learns with the grant that others wait behind it",
            safeguard: "(resource_waiting > 0 and '/2' or '/1')", replacement: "'/1'"
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
}

private let cohortFences = Int(CohortStateMachine.fences)

extension ForeignNode {
    /// Acquires the mutex `s` for a cohort by the first request, and returns the fence.
    fileprivate func fenceOfCohort() async throws -> Int {
        let reply = try await request("acquire", "s", ["mf", "1", "k"])
        try #require(reply.count == 2 && reply[1] == "1")
        return Int(reply[0])!
    }
}
