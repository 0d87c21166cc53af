// Messages stay until all devices have acknowledged them.
import Hiredis
import TestSupport

@testable import QueueListen

extension MailHazard {
    static let keptMessages: [MailHazard] = [
        MailHazard(
            invariant: "M3", testDescription: "after a loss, no device deletes messages that another has not received",
            guardian: "call('HSET', box, 'd', devices)", without: "call('HDEL', box, 'd')"
        ) { node, _ in
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            let first = try await node.listen(to: "alice", device: "phone")
            let cursor = ForeignNode.end(first)
            _ = try await node.listen(to: "alice", after: cursor, device: "phone", poll: 2)
            _ = try await node.listen(to: "alice", device: "laptop")
            let knowledge = Array(cursor.epoch.utf8) + ForeignNode.Packed.doubles(2) + Array("tag-of-2".utf8)
            _ = try await node.send(["b"], to: ["alice"], number: 2, knowledge: knowledge)
            // The laptop receives all that is there, and acknowledges it.
            let all = try await node.listen(to: "alice", device: "laptop", poll: 3)
            _ = try await node.listen(to: "alice", after: ForeignNode.end(all), device: "laptop", poll: 4)
            let notified = try await node.listen(to: "alice", after: cursor, device: "phone", poll: 5)
            let position = (index: notified[2], epoch: notified[1], tag: notified[3])
            let rest = try await node.listen(to: "alice", after: position, device: "phone", poll: 6)
            return notified.first == "reset" && ForeignNode.texts(rest).contains("b")
        },
        MailHazard(
            invariant: "M3",
            testDescription: "after a loss, a device's old position does not count as an acknowledgement",
            guardian: "devices = all", without: ""
        ) { node, redis in
            _ = try await node.listen(to: "alice", device: "laptop")
            _ = try await node.send(["a", "b", "c"], to: ["alice"], number: 1)
            let cursor = ForeignNode.end(try await node.listen(to: "alice", device: "phone", poll: 2))
            _ = try await node.listen(to: "alice", after: cursor, device: "phone", poll: 3)
            _ = try await redis.send("RPOP", .string(node.key("mail:alice")), 4)
            _ = try await node.send(["d", "e"], to: ["alice"], number: 2)
            let start = ForeignNode.end(try await node.listen(to: "alice", device: "laptop", poll: 4))
            let all = try await node.listen(to: "alice", after: start, device: "laptop", poll: 5)
            _ = try await node.listen(to: "alice", after: ForeignNode.end(all), device: "laptop", poll: 6)
            let notified = try await node.listen(to: "alice", after: cursor, device: "phone", poll: 7)
            let position = ForeignNode.end(notified)
            let rest = try await node.listen(to: "alice", after: position, device: "phone", poll: 8)
            return notified.first == "reset" && ForeignNode.texts(rest) == ["a", "d", "e"]
        },
        MailHazard(
            invariant: "M3", testDescription: "messages are kept for the slowest device",
            guardian: "if others_least and others_least < cut then", without: "if false then"
        ) { node, _ in
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            _ = try await node.listen(to: "alice", device: "slow")
            let cursor = ForeignNode.end(try await node.listen(to: "alice", device: "fast"))
            _ = try await node.listen(to: "alice", after: cursor, device: "fast", poll: 2)
            return ForeignNode.texts(try await node.listen(to: "alice", device: "slow")) == ["a"]
        },
        MailHazard(
            invariant: "M3", testDescription: "a full mailbox that rejects deletes no message",
            guardian: "if is_needed and box.when_full == 0 then", without: "if false then"
        ) { node, _ in
            var node = node
            node.limits.maxMessages = 2
            _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
            _ = try await node.send(["c"], to: ["alice"], number: 2)
            return try await node.texts(in: "alice") == ["a", "b"]
        },
        MailHazard(
            invariant: "M3", testDescription: "a full mailbox makes more room than one script can make",
            guardian: "has_room = last >= count and dropped >= bytes", without: "has_room = true"
        ) { node, redis in
            var node = node
            node.limits.maxBytes = 1 << 30
            let large = String(repeating: "x", count: 1 << 20)
            for number in 1...10 { _ = try await node.send([large], to: ["alice"], number: number) }
            node.limits.maxBytes = 1 << 20
            node.limits.whenFull = 1
            // The first script only makes room.
            for _ in 0..<2 { _ = try await node.send(["last"], to: ["alice"], number: 11) }
            // Two elements for the one message that is left.
            return try await redis.send("LLEN", .string(node.key("mail:alice"))).integer == 2
        },
        MailHazard(
            invariant: "M3", testDescription: "an older cursor revokes no acknowledgement",
            guardian: "if cursor_index > mine_index and not request_reads_ahead",
            without: "if not request_reads_ahead"
        ) { node, _ in
            var node = node
            node.limits.backlogCount = 10
            _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
            let start = try await node.listen(to: "alice")
            _ = try await node.listen(to: "alice", after: ForeignNode.end(start), poll: 2)
            _ = try await node.listen(to: "alice", after: (start[2], start[1], start[3]), poll: 3)
            // The device's acknowledged position.
            return try await node.listen(to: "alice", poll: 4)[2] == "2"
        },
        MailHazard(
            invariant: "M3", testDescription: "a reader that reads ahead acknowledges nothing",
            guardian: "and not request_reads_ahead", without: ""
        ) { node, _ in
            _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
            let cursor = ForeignNode.end(try await node.listen(to: "alice", readsAhead: true))
            _ = try await node.listen(to: "alice", after: cursor, readsAhead: true, begins: false)
            return ForeignNode.texts(try await node.listen(to: "alice", poll: 2)) == ["a", "b"]
        },
        MailHazard(
            invariant: "M3", testDescription: "messages survive the loss of the mailbox's hash",
            guardian: "if count ~= 0 then", without: "if false then"
        ) { node, redis in
            _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
            _ = try await redis.send("DEL", .string(node.key("box:alice")))
            return try await node.texts(in: "alice") == ["a", "b"]
        },
    ]
}
