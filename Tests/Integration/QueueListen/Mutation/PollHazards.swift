// A process that waits is notified, and a newer poll supersedes an older one.
import Hiredis
import TestSupport
import Testing

@testable import QueueListen

extension MailHazard {
    static let polls: [MailHazard] = [
        MailHazard(
            invariant: "M6", testDescription: "a process that finds an empty mailbox is notified of the next message",
            guardian: "if is_waiting then", without: "if false then"
        ) { node, redis in
            _ = try await node.listen(to: "alice")
            return try await redis.withSubscription(to: [.channel(node.key("wake:\(ForeignNode.process)")), "end"]) {
                events in
                _ = try await node.send(["a"], to: ["alice"], number: 1)
                _ = try await redis.publish("end", to: "end")
                guard case .message(let message)? = try await events.next() else { return false }
                return MailWakeUp.decode(message.payload).map(\.mailbox) == ["alice"]
            }
        },
        MailHazard(
            invariant: "M6", testDescription: "a process that waits for a lost mailbox is notified of the new one",
            guardian: "if box.is_new then", without: "if false then"
        ) { node, redis in
            try await redis.withSubscription(to: [.channel(node.key("wake:all")), "end"]) { events in
                _ = try await node.send(["a"], to: ["alice"], number: 1)
                _ = try await redis.publish("end", to: "end")
                guard case .message(let message)? = try await events.next() else { return false }
                return MailWakeUp.decode(message.payload).map(\.mailbox) == ["alice"]
            }
        },
        MailHazard(
            invariant: "M6", testDescription: "an older poll of a device is superseded by a newer one",
            guardian: "if not poll_is_current and (request_phase == 0 and not poll_begins or", without: "if (false or"
        ) { node, _ in
            _ = try await node.listen(to: "alice", poll: 1)
            _ = try await node.listen(to: "alice", poll: 2)
            return try await node.listen(to: "alice", poll: 1, begins: false).first == "superseded"
        },
        MailHazard(
            invariant: "M6", testDescription: "an older poll whose first reply was lost does not supersede a newer one",
            guardian: "or poll_begins and has_begun)", without: "or false)"
        ) { node, redis in
            var other = node
            other.process = "fedcba9876543210"
            _ = try await node.listen(to: "alice", poll: 1)
            for poll in 1...5 { _ = try await other.listen(to: "alice", poll: poll) }
            let again = try await node.listen(to: "alice", poll: 1)
            // A new one is not an older one.
            let next = try await node.listen(to: "alice", poll: 2)
            return again.first == "superseded" && next.first == "ok"
        },
        MailHazard(
            invariant: "M6",
            testDescription: "a poll whose beginning Redis has lost is not superseded, whoever has read before it",
            guardian: "(is_known or #mine_polls", without: "(#mine_polls"
        ) { node, redis in
            // Newer by the others' clocks, so that only the process itself is known.
            try await othersRead(node, polls: 10)
            _ = try await node.listen(to: "alice", poll: 1)
            let devices = try #require(try await redis.send("HGET", .string(node.key("box:alice")), "d").bytes)
            _ = try await node.listen(to: "alice", poll: 2)
            _ = try await redis.send("HSET", .string(node.key("box:alice")), "d", .bytes(devices))
            return try await node.listen(to: "alice", poll: 2, begins: false).first == "ok"
        },
        MailHazard(
            invariant: "M6",
            testDescription:
                "the first poll of a process, whose beginning Redis has lost, is not superseded by older ones",
            guardian: " or oldest < request_poll) then", without: ") then"
        ) { node, redis in
            try await othersRead(node, polls: 1)
            let devices = try #require(try await redis.send("HGET", .string(node.key("box:alice")), "d").bytes)
            _ = try await node.listen(to: "alice", poll: 2)
            _ = try await redis.send("HSET", .string(node.key("box:alice")), "d", .bytes(devices))
            return try await node.listen(to: "alice", poll: 2, begins: false).first == "ok"
        },
        MailHazard(
            invariant: "M6",
            testDescription: "a poll that Redis has forgotten, because others have begun since, is superseded",
            guardian: "(is_known or #mine_polls < 96 or oldest < request_poll)", without: "true"
        ) { node, _ in
            _ = try await node.listen(to: "alice", poll: 1)
            try await othersRead(node, polls: 2)
            return try await node.listen(to: "alice", poll: 1, begins: false).first == "superseded"
        },
    ]
}

/// Five other processes begin a poll each, one after the other.
private func othersRead(_ node: ForeignNode, polls: Int) async throws {
    for number in 0..<5 {
        var other = node
        other.process = "fedcba987654321\(number)"
        _ = try await other.listen(to: "alice", poll: polls)
    }
}
