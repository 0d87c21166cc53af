// Losses are reported to all that may have missed a message, and to nobody else.
import Hiredis
import TestSupport

@testable import QueueListen

extension MailHazard {
    static let losses: [MailHazard] = [
        MailHazard(
            invariant: "M1", testDescription: "a list that another program has replaced is reported",
            guardian: "or head_index ~= state_last or head_tag ~= state_tag then", without: "then"
        ) { node, redis in
            _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
            let cursor = ForeignNode.end(try await node.listen(to: "alice"))
            _ = try await node.send(["x", "y", "z"], to: ["bob"], number: 2)
            _ = try await redis.send("COPY", .string(node.key("mail:bob")), .string(node.key("mail:alice")), "REPLACE")
            _ = try await redis.send("LPOP", .string(node.key("mail:alice")), 2)
            return try await node.listen(to: "alice", after: cursor).first == "reset"
        },
        MailHazard(
            invariant: "M2", testDescription: "another epoch is reported",
            guardian: "elseif request_cursor_epoch ~= state_epoch then",
            without: "elseif false then"
        ) { node, redis in
            _ = try await node.send(["a"], to: ["alice"], number: 1, tag: "the-same-one-")
            let reply = try await node.listen(to: "alice")
            let cursor = ForeignNode.end(reply)
            // The mailbox is created again, by chance with the same tags.
            _ = try await redis.send("HDEL", .string(node.key("box:alice")), "m")
            return try await node.listen(to: "alice", after: cursor).first == "reset"
        },
        MailHazard(
            invariant: "M2", testDescription: "a cursor ahead of the mailbox is reported",
            guardian: "if cursor_index > state_last then",
            without: "if false then"
        ) { node, redis in
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            let reply = try await node.listen(to: "alice")
            return try await node.listen(to: "alice", after: ("3", reply[1], "tag-of-3")).first == "forked"
        },
        MailHazard(
            invariant: "M2", testDescription: "a lost end with other messages in its place is reported",
            guardian: "if tag ~= cursor_tag then", without: "if false then"
        ) { node, redis in
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            for kind in ["box", "mail"] {
                _ = try await redis.send(
                    "COPY", .string(node.key("\(kind):alice")), .string(node.key("\(kind):before")))
            }
            _ = try await node.send(["b"], to: ["alice"], number: 2)
            let cursor = ForeignNode.end(try await node.listen(to: "alice"))
            // Fails over.
            for kind in ["box", "mail"] {
                _ = try await redis.send(
                    "RENAME", .string(node.key("\(kind):before")), .string(node.key("\(kind):alice")))
            }
            _ = try await node.send(["c", "d"], to: ["alice"], number: 3)
            return try await node.listen(to: "alice", after: cursor).first == "forked"
        },
        MailHazard(
            invariant: "M2", testDescription: "a lost unread message is reported when its sender sends again",
            guardian: "state_epoch, state_is_new = target_new_epoch, true", without: ""
        ) { node, redis in
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            let cursor = ForeignNode.end(try await node.listen(to: "alice"))
            // Index 2 was confirmed to the sender, and does not exist.
            let knowledge = Array(cursor.epoch.utf8) + ForeignNode.Packed.doubles(2) + Array("tag-of-2".utf8)
            _ = try await node.send(["b"], to: ["alice"], number: 2, knowledge: knowledge)
            return try await node.listen(to: "alice", after: cursor).first == "reset"
        },
        MailHazard(
            invariant: "M2", testDescription: "deleted messages are reported",
            guardian: "elseif cursor_index < state_from then", without: "elseif false then"
        ) { node, redis in
            _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
            let start = try await node.listen(to: "alice")
            _ = try await node.listen(to: "alice", after: ForeignNode.end(start), poll: 2)
            return try await node.listen(to: "alice", after: (start[2], start[1], start[3]), poll: 3).first
                == "truncated"
        },
        MailHazard(
            invariant: "M2", testDescription: "a device that has not read a lost message is unaware of the loss",
            guardian: "device_index, device_tag = -1,",
            without: "device_index, device_tag = state_from, state_from_tag or", scenario: lossIsReported
        ),
        MailHazard(
            invariant: "M2", testDescription: "a process that begins without a cursor is notified of a loss",
            guardian: "if mine_index == -1 then",
            without: "if mine_index == -1 then cursor_index, cursor_tag = state_from, state_from_tag end if false then",
            scenario: lossIsReported
        ),
        MailHazard(
            invariant: "M2",
            testDescription: "a device is unaware of a loss until it has acknowledged a later position",
            guardian: "if cursor_status ~= 'truncated' and request_phase < 2 and mine_index ~= -1 then",
            without: "mine_index, mine_tag, has_moved = state_from, state_from_tag, true if false then",
            scenario: lossIsReported
        ),
        MailHazard(
            invariant: "M2", testDescription: "a process that begins without a cursor is notified of dropped messages",
            guardian: "cursor_index, cursor_tag = mine_index or state_from, mine_tag or state_from_tag",
            without: "cursor_index, cursor_tag = math.max(mine_index or state_from, state_from), state_from_tag"
        ) { node, _ in
            var node = node
            (node.limits.maxMessages, node.limits.whenFull) = (2, 1)
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            _ = try await node.listen(to: "alice", after: ForeignNode.end(try await node.listen(to: "alice")), poll: 2)
            for number in 2...4 { _ = try await node.send(["\(number)"], to: ["alice"], number: number) }
            return try await node.listen(to: "alice", poll: 3)[0] == "truncated"
        },
        MailHazard(
            invariant: "M2", testDescription: "a lost message is reported after others in its place were acknowledged",
            guardian: "if deletion_history then", without: "if false then"
        ) { node, _ in
            _ = try await node.send(["a", "b", "c"], to: ["alice"], number: 1)
            try await acknowledge(node, poll: 1)
            _ = try await node.send(["d"], to: ["alice"], number: 2, knowledge: knowledge(1, tag: "lost one"))
            return try await node.listen(to: "alice", poll: 3)[0] == "reset"
        },
        MailHazard(
            invariant: "M2",
            testDescription: "no loss is reported if limits dropped messages after the last acknowledged one",
            guardian: "(history, -8) == state_from_tag", without: "(history, -8)"
        ) { node, _ in
            var node = node
            (node.limits.maxMessages, node.limits.whenFull) = (2, 1)
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            try await acknowledge(node, poll: 1)
            for number in 2...4 { _ = try await node.send(["\(number)"], to: ["alice"], number: number) }
            _ = try await node.send(["b"], to: ["alice"], number: 5, knowledge: knowledge(1, tag: "-of-it10"))
            return try await node.listen(to: "alice", poll: 3)[0] == "truncated"
        },
        MailHazard(
            invariant: "M2",
            testDescription: "no loss is reported if limits dropped messages between acknowledged ones",
            guardian: " history = state_from_tag", without: ""
        ) { node, _ in
            var node = node
            (node.limits.maxMessages, node.limits.whenFull) = (2, 1)
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            try await acknowledge(node, poll: 1)
            for number in 2...4 { _ = try await node.send(["\(number)"], to: ["alice"], number: number) }
            let truncated = try await node.listen(to: "alice", poll: 3)
            let cursor = ForeignNode.end(
                try await node.listen(to: "alice", after: (truncated[2], truncated[1], truncated[3]), poll: 4))
            _ = try await node.listen(to: "alice", after: cursor, poll: 5)
            _ = try await node.send(["b"], to: ["alice"], number: 5, knowledge: knowledge(2, tag: "-of-it20"))
            return try await node.listen(to: "alice", after: cursor, poll: 6)[0] == "ok"
        },
        MailHazard(
            invariant: "M2", testDescription: "a repair reports no loss of a message that the history does not reach",
            guardian: "if found and found ~= known_tag then", without: "if found ~= known_tag then"
        ) { node, redis in
            _ = try await node.send(["a", "b", "c"], to: ["alice"], number: 1)
            let cursor = ForeignNode.end(try await node.listen(to: "alice"))
            _ = try await redis.send("DEL", .string(node.key("mail:alice")))
            _ = try await node.send(["d"], to: ["alice"], number: 2, knowledge: knowledge(1, tag: "-of-it10"))
            return try await node.listen(to: "alice", after: cursor, poll: 2)[0] == "ok"
        },
        MailHazard(
            invariant: "M2", testDescription: "a send does not hide that an earlier one in its place is lost",
            guardian: "elseif request_condition > answered then", without: "elseif false then"
        ) { node, redis in
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            _ = try await node.send(["b"], to: ["alice"], number: 2, after: 1)
            // Redis has lost the second one, and its answer.
            _ = try await redis.send("DEL", .string(node.key("sent:foreigner")))
            return try await node.send(["c"], to: ["bob"], number: 3, after: 2) == ["behind"]
        },
    ]
}

/// Loses the last message, and returns whether two processes of a device that begin without a cursor are both notified.
private func lossIsReported(_ node: ForeignNode, _ redis: RedisClient) async throws -> Bool {
    _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
    _ = try await node.listen(to: "alice")
    _ = try await redis.send("RPOP", .string(node.key("mail:alice")), "2")
    _ = try await node.send(["c"], to: ["alice"], number: 2)
    var words: [String] = []
    for poll in 2...3 { words.append(try await node.listen(to: "alice", poll: poll)[0]) }
    return words == ["reset", "reset"]
}

/// A sender's knowledge of a mailbox that the first send created: Known of Lua/records.lua.
private func knowledge(_ index: Int, tag: String) -> [UInt8] {
    Array("-of-it10".utf8) + ForeignNode.Packed.doubles(index) + Array(tag.utf8)
}

/// Acknowledges all messages.
private func acknowledge(_ node: ForeignNode, poll: Int) async throws {
    let cursor = ForeignNode.end(try await node.listen(to: "alice", poll: poll))
    _ = try await node.listen(to: "alice", after: cursor, poll: poll + 1)
}
