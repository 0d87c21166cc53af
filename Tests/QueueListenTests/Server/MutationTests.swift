import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen

/// A hazard, the line of a script that prevents it, and a scenario that fails without that line.
struct MailHazard: Sendable, CustomTestStringConvertible {
    /// The invariant in docs/failure-model.md.
    var invariant: String
    var testDescription: String
    var guardian: String
    var without: String
    /// Returns whether the invariant holds.
    var scenario: @Sendable (ForeignNode, RedisClient) async throws -> Bool
}

extension QueueListenTests {
    @Suite("Each safeguard of the scripts")
    struct MutationTests {
        @Test("prevents its hazard, and nothing else does", arguments: hazards)
        func hazard(_ hazard: MailHazard) async throws {
            for isMutated in [false, true] {
                try await withServer { _, redis, _ in
                    var found = false
                    for name in ForeignNode.files {
                        found = try ForeignNode.source(name).contains(hazard.guardian) || found
                    }
                    try #require(found, "the scripts do not contain \(hazard.guardian)")
                    let node = ForeignNode(redis: redis) { source in
                        guard isMutated else { return source }
                        return source.replacingOccurrences(of: hazard.guardian, with: hazard.without)
                    }
                    let holds = try await hazard.scenario(node, redis)
                    #expect(holds != isMutated, "\(hazard.invariant), \(isMutated ? "without" : "with") the safeguard")
                }
            }
        }
    }
}

private func texts(_ node: ForeignNode, _ name: String) async throws -> [String] {
    ForeignNode.texts(try await node.listen(to: name, device: "looker"))
}

/// Leaves the server no memory for new data.
private func exhaust(_ redis: RedisClient) async throws {
    _ = try await redis.send("CONFIG", "SET", "maxmemory", "1")
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

/// What a sender knows of a mailbox that the first send created: KNOWN of mail_send_check.lua.
private func knowledge(_ index: Int, tag: String) -> [UInt8] {
    Array("-of-it10".utf8) + ForeignNode.Packed.doubles(index) + Array(tag.utf8)
}

/// Acknowledges all messages.
private func acknowledge(_ node: ForeignNode, poll: Int) async throws {
    let cursor = ForeignNode.end(try await node.listen(to: "alice", poll: poll))
    _ = try await node.listen(to: "alice", after: cursor, poll: poll + 1)
}

private let hazards: [MailHazard] = [
    MailHazard(
        invariant: "M4", testDescription: "a repeated send has one effect", guardian: "if request == number then",
        without: "if false then"
    ) { node, _ in
        for _ in 0..<2 { _ = try await node.send(["a"], to: ["alice"], number: 1) }
        return try await texts(node, "alice") == ["a"]
    },
    MailHazard(
        invariant: "M4", testDescription: "a repeated send whose answer was deleted is refused",
        guardian: "if request < number then return {'stale'} end", without: ""
    ) { node, _ in
        _ = try await node.send(["a"], to: ["alice"], number: 1)
        _ = try await node.send(["b"], to: ["alice"], number: 2)
        _ = try await node.send(["a"], to: ["alice"], number: 1)
        return try await texts(node, "alice") == ["a", "b"]
    },
    MailHazard(
        invariant: "M4", testDescription: "an id that was used for another send is refused",
        guardian: "if print ~= fingerprint then return {'conflict'} end", without: ""
    ) { node, _ in
        _ = try await node.send(["a"], to: ["alice"], number: 1)
        return try await node.send(["b"], to: ["bob"], number: 1, fingerprint: "another.") == ["conflict"]
    },
    MailHazard(
        invariant: "M1", testDescription: "a recipient that is named twice does not get two messages with one index",
        guardian: "if seen[box] then", without: "if false then"
    ) { node, redis in
        _ = try await node.send(["a"], to: ["alice", "alice"], number: 1)
        let reply = try await node.listen(to: "alice")
        return ForeignNode.texts(reply).count <= 1 && reply[1] == "epoch-99"
    },
    MailHazard(
        invariant: "M1", testDescription: "a list that another program has replaced is reported",
        guardian: "or index ~= last or tag ~= last_tag then", without: "then"
    ) { node, redis in
        _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
        let cursor = ForeignNode.end(try await node.listen(to: "alice"))
        _ = try await node.send(["x", "y", "z"], to: ["bob"], number: 2)
        _ = try await redis.send("COPY", .string(node.key("mail:bob")), .string(node.key("mail:alice")), "REPLACE")
        _ = try await redis.send("LPOP", .string(node.key("mail:alice")), 2)
        return try await node.listen(to: "alice", after: cursor).first == "reset"
    },
    MailHazard(
        invariant: "M2", testDescription: "another epoch is reported", guardian: "elseif cursor_epoch ~= epoch then",
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
        guardian: "if index > last then",
        without: "if false then"
    ) { node, redis in
        _ = try await node.send(["a"], to: ["alice"], number: 1)
        let reply = try await node.listen(to: "alice")
        return try await node.listen(to: "alice", after: ("3", reply[1], "tag-of-3")).first == "forked"
    },
    MailHazard(
        invariant: "M2", testDescription: "a lost end with other messages in its place is reported",
        guardian: "if found ~= tag then status = 'forked' end", without: ""
    ) { node, redis in
        _ = try await node.send(["a"], to: ["alice"], number: 1)
        for kind in ["box", "mail"] {
            _ = try await redis.send("COPY", .string(node.key("\(kind):alice")), .string(node.key("\(kind):before")))
        }
        _ = try await node.send(["b"], to: ["alice"], number: 2)
        let cursor = ForeignNode.end(try await node.listen(to: "alice"))
        // Fails over.
        for kind in ["box", "mail"] {
            _ = try await redis.send("RENAME", .string(node.key("\(kind):before")), .string(node.key("\(kind):alice")))
        }
        _ = try await node.send(["c", "d"], to: ["alice"], number: 3)
        return try await node.listen(to: "alice", after: cursor).first == "forked"
    },
    MailHazard(
        invariant: "M2", testDescription: "a lost unread message is reported when its sender sends again",
        guardian: "if found ~= tag then epoch, is_new = new_epoch, true end", without: ""
    ) { node, redis in
        _ = try await node.send(["a"], to: ["alice"], number: 1)
        let cursor = ForeignNode.end(try await node.listen(to: "alice"))
        // Index 2 was confirmed to the sender, and does not exist.
        let knowledge = Array(cursor.epoch.utf8) + ForeignNode.Packed.doubles(2) + Array("tag-of-2".utf8)
        _ = try await node.send(["b"], to: ["alice"], number: 2, knowledge: knowledge)
        return try await node.listen(to: "alice", after: cursor).first == "reset"
    },
    MailHazard(
        invariant: "M3", testDescription: "after a loss, no device deletes messages that another has not received",
        guardian: "if devices ~= '' then call('HSET', box, 'd', devices) end", without: "call('HDEL', box, 'd')"
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
        invariant: "M3", testDescription: "after a loss, a device's old position does not count as an acknowledgement",
        guardian: "all = all .. pack(DEVICE, #name, name, UNAWARE, NO_TAG, seen, #polls, polls)",
        without: "all = sub(devices, 1, at - 1)"
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
        invariant: "M2", testDescription: "deleted messages are reported", guardian: "elseif index < from then",
        without: "elseif false then"
    ) { node, redis in
        _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
        let start = try await node.listen(to: "alice")
        _ = try await node.listen(to: "alice", after: ForeignNode.end(start), poll: 2)
        return try await node.listen(to: "alice", after: (start[2], start[1], start[3]), poll: 3).first == "truncated"
    },
    MailHazard(
        invariant: "M3", testDescription: "messages are kept for the slowest device",
        guardian: "if least and least < cut then cut = least end", without: ""
    ) { node, _ in
        _ = try await node.send(["a"], to: ["alice"], number: 1)
        _ = try await node.listen(to: "alice", device: "slow")
        let cursor = ForeignNode.end(try await node.listen(to: "alice", device: "fast"))
        _ = try await node.listen(to: "alice", after: cursor, device: "fast", poll: 2)
        return ForeignNode.texts(try await node.listen(to: "alice", device: "slow")) == ["a"]
    },
    MailHazard(
        invariant: "M3", testDescription: "a full mailbox that rejects deletes no message",
        guardian: "if is_needed and b.when_full == REJECT then return {'full', number} end",
        without: ""
    ) { node, _ in
        var node = node
        node.limits.maxMessages = 2
        _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
        _ = try await node.send(["c"], to: ["alice"], number: 2)
        return try await texts(node, "alice") == ["a", "b"]
    },
    MailHazard(
        invariant: "M3", testDescription: "a full mailbox makes more room than one script can make",
        guardian: "if high < count or sum - b.from_sum < bytes then is_step = true end", without: ""
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
        guardian: "if index > mine_index and not reads_ahead", without: "if not reads_ahead"
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
        guardian: "and not reads_ahead", without: ""
    ) { node, _ in
        _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
        let cursor = ForeignNode.end(try await node.listen(to: "alice", readsAhead: true))
        _ = try await node.listen(to: "alice", after: cursor, readsAhead: true, begins: false)
        return ForeignNode.texts(try await node.listen(to: "alice", poll: 2)) == ["a", "b"]
    },
    MailHazard(
        invariant: "M2", testDescription: "a device that has not read a lost message is unaware of the loss",
        guardian: "name, UNAWARE, NO_TAG, seen", without: "name, from, from_tag, seen", scenario: lossIsReported
    ),
    MailHazard(
        invariant: "M2", testDescription: "a process that begins without a cursor is notified of a loss",
        guardian: "if mine_index == UNAWARE then status = 'reset' end",
        without: "if mine_index == UNAWARE then index, tag = from, from_tag end", scenario: lossIsReported
    ),
    MailHazard(
        invariant: "M2", testDescription: "a device is unaware of a loss until it has acknowledged a later position",
        guardian: "if status ~= 'truncated' and phase ~= ACKNOWLEDGES and mine_index ~= UNAWARE then",
        without: "mine_index, mine_tag, has_moved = from, from_tag, true if false then", scenario: lossIsReported
    ),
    MailHazard(
        invariant: "M2", testDescription: "a process that begins without a cursor is notified of dropped messages",
        guardian: "index, tag = mine_index or from, mine_tag or from_tag",
        without: "index, tag = math.max(mine_index or from, from), from_tag"
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
        guardian: "if history then call('HSET', box, 'h', history) end", without: ""
    ) { node, _ in
        _ = try await node.send(["a", "b", "c"], to: ["alice"], number: 1)
        try await acknowledge(node, poll: 1)
        _ = try await node.send(["d"], to: ["alice"], number: 2, knowledge: knowledge(1, tag: "lost one"))
        return try await node.listen(to: "alice", poll: 3)[0] == "reset"
    },
    MailHazard(
        invariant: "M2",
        testDescription: "no loss is reported if limits dropped messages after the last acknowledged one",
        guardian: "sub(history, -8) == from_tag and sub(history, at, at + 7)", without: "sub(history, at, at + 7)"
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
        invariant: "M2", testDescription: "no loss is reported if limits dropped messages between acknowledged ones",
        guardian: "if sub(history, -8) ~= from_tag then history = from_tag end", without: ""
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
        guardian: "sub(history, at, at + 7) or tag", without: "sub(history, at, at + 7)"
    ) { node, redis in
        _ = try await node.send(["a", "b", "c"], to: ["alice"], number: 1)
        let cursor = ForeignNode.end(try await node.listen(to: "alice"))
        _ = try await redis.send("DEL", .string(node.key("mail:alice")))
        _ = try await node.send(["d"], to: ["alice"], number: 2, knowledge: knowledge(1, tag: "-of-it10"))
        return try await node.listen(to: "alice", after: cursor, poll: 2)[0] == "ok"
    },
    MailHazard(
        invariant: "M3", testDescription: "messages survive the loss of the mailbox's hash",
        guardian: "if count ~= 0 then\n  if type", without: "if false then\n  if type"
    ) { node, redis in
        _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
        _ = try await redis.send("DEL", .string(node.key("box:alice")))
        return try await texts(node, "alice") == ["a", "b"]
    },
    MailHazard(
        invariant: "M5", testDescription: "one full recipient refuses the send for all",
        guardian: "if b.is_over then return {'full', number} end", without: ""
    ) { node, redis in
        var node = node
        node.limits.maxMessages = 1
        _ = try await node.send(["a", "b"], to: ["alice", "bob"], number: 1)
        return try await redis.send("EXISTS", .string(node.key("mail:alice"))).integer == 0
    },
    MailHazard(
        invariant: "M5", testDescription: "at maxmemory a send reaches no recipient",
        guardian: "local is_renewed =",
        without: "call('HDEL', KEYS[1], '') local is_renewed ="
    ) { node, redis in
        try await exhaust(redis)
        return try await node.send(["a"], to: ["alice", "bob"], number: 1).isEmpty
    },
    MailHazard(
        invariant: "M5", testDescription: "at maxmemory reading works, because it frees memory",
        guardian: "else call('HDEL', box, '') end", without: "end"
    ) { node, redis in
        _ = try await node.send(["a"], to: ["alice"], number: 1)
        try await exhaust(redis)
        return try await texts(node, "alice") == ["a"]
    },
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
            return MailHint.decode(message.payload).map(\.mailbox) == ["alice"]
        }
    },
    MailHazard(
        invariant: "M6", testDescription: "a process that waits for a lost mailbox is notified of the new one",
        guardian: "if b.is_new then\n        hints_of.all = hints_of.all or {}",
        without: "if false then\n        hints_of.all = {}"
    ) { node, redis in
        try await redis.withSubscription(to: [.channel(node.key("wake:all")), "end"]) { events in
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            _ = try await redis.publish("end", to: "end")
            guard case .message(let message)? = try await events.next() else { return false }
            return MailHint.decode(message.payload).map(\.mailbox) == ["alice"]
        }
    },
    MailHazard(
        invariant: "M6", testDescription: "an older poll of a device is superseded by a newer one",
        guardian: "if not is_current and (phase == CONTINUES and not begins or", without: "if (false or"
    ) { node, _ in
        _ = try await node.listen(to: "alice", poll: 1)
        _ = try await node.listen(to: "alice", poll: 2)
        return try await node.listen(to: "alice", poll: 1, begins: false).first == "superseded"
    },
    MailHazard(
        invariant: "M6", testDescription: "an older poll whose first reply was lost does not supersede a newer one",
        guardian: "or begins and has_begun)", without: "or false)"
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
        guardian: "(is_known or #polls", without: "(#polls"
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
        testDescription: "the first poll of a process, whose beginning Redis has lost, is not superseded by older ones",
        guardian: " or oldest < poll) then", without: ") then"
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
        guardian: "(is_known or #polls < MAX_POLLS * POLL_SIZE or oldest < poll)", without: "true"
    ) { node, _ in
        _ = try await node.listen(to: "alice", poll: 1)
        try await othersRead(node, polls: 2)
        return try await node.listen(to: "alice", poll: 1, begins: false).first == "superseded"
    },
    MailHazard(
        invariant: "M4", testDescription: "a part of a cross-partition send that arrives too late has no effect",
        guardian: "if mode == PART and now > deadline then return {'late'} end", without: ""
    ) { node, _ in
        _ = try await node.send(["a"], to: ["alice"], number: 1, part: .deliver(until: 1))
        return try await texts(node, "alice").isEmpty
    },
    MailHazard(
        invariant: "M5", testDescription: "probing whether a part would be accepted sends nothing",
        guardian: "if mode == PROBE then return {'ok', format('%d', now)} end", without: ""
    ) { node, redis in
        _ = try await node.send(["a"], to: ["alice"], number: 1, part: .probe)
        return try await redis.send("DBSIZE").integer == 0
    },
    MailHazard(
        invariant: "M5", testDescription: "a part of a recorded send is not refused by a full mailbox",
        guardian: "local is_over = mode ~= PART and", without: "local is_over ="
    ) { node, _ in
        var node = node
        node.limits.maxMessages = 1
        _ = try await node.send(["a"], to: ["alice"], number: 1)
        _ = try await node.send(["b"], to: ["alice"], number: 2, part: .deliver(until: 99_999_999_999_999))
        return try await texts(node, "alice") == ["a", "b"]
    },
    MailHazard(
        invariant: "M4",
        testDescription: "an id of a cross-partition send that was used for another send is refused",
        guardian: "if known ~= fingerprint then return {'conflict'} end", without: ""
    ) { node, _ in
        _ = try await node.begin("x")
        return try await node.begin("x", fingerprint: "g") == ["conflict"]
    },
    MailHazard(
        invariant: "M4", testDescription: "a cross-partition send is finished once",
        guardian: "if redis.call('HDEL', split, ENCODED) == 0 then return 0 end", without: ""
    ) { node, _ in
        _ = try await node.begin("x")
        try await node.finish("x", indices: "1")
        try await node.finish("x", indices: "2")
        return try await node.begin("x") == ["ok", "1"]
    },
    MailHazard(
        invariant: "M5",
        testDescription: "a send that one node has taken over is not immediately taken over by another",
        guardian: "for _, id in ipairs(ids) do", without: "for _, id in ipairs({}) do"
    ) { node, redis in
        _ = try await node.begin("x")
        _ = try await redis.send("ZADD", .string(node.key("splits")), 1, "x")
        guard try await node.takeOver() == ["x"] else { return false }
        return try await node.takeOver().isEmpty
    },
]

/// Five other processes begin a poll each, one after the other.
private func othersRead(_ node: ForeignNode, polls: Int) async throws {
    for number in 0..<5 {
        var other = node
        other.process = "fedcba987654321\(number)"
        _ = try await other.listen(to: "alice", poll: polls)
    }
}
