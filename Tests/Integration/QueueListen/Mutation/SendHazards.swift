// The invariants of sends: all recipients or none, and one effect however often a send is repeated.
import Hiredis
import TestSupport

@testable import QueueListen

extension MailHazard {
    static let sends: [MailHazard] = [
        MailHazard(
            invariant: "M4", testDescription: "a repeated send has one effect",
            guardian: "if request_number == answer_number then", without: "if false then"
        ) { node, _ in
            for _ in 0..<2 { _ = try await node.send(["a"], to: ["alice"], number: 1) }
            return try await node.texts(in: "alice") == ["a"]
        },
        MailHazard(
            invariant: "M4", testDescription: "a repeated send whose answer was deleted is refused",
            guardian: "if request_number < answer_number then", without: "if false then"
        ) { node, _ in
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            _ = try await node.send(["b"], to: ["alice"], number: 2)
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            return try await node.texts(in: "alice") == ["a", "b"]
        },
        MailHazard(
            invariant: "M4", testDescription: "an id that was used for another send is refused",
            guardian: "if repeated_fingerprint ~= request_fingerprint then", without: "if false then"
        ) { node, _ in
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            return try await node.send(["b"], to: ["bob"], number: 1, fingerprint: "another.") == ["conflict"]
        },
        MailHazard(
            invariant: "M4", testDescription: "a send that finds a damaged list leaves no message in it",
            guardian: "call('LTRIM', mail, '0', '-3')", without: "call('LLEN', mail)"
        ) { node, redis in
            _ = try await node.send(["a", "b"], to: ["alice"], number: 1)
            _ = try await redis.send("RPOP", .string(node.key("mail:alice")), 2)
            // Refused, and repeated after a repair.
            _ = try await node.send(["c"], to: ["alice"], number: 2)
            return try await node.texts(in: "alice") == ["a", "c"]
        },
        MailHazard(
            invariant: "M1",
            testDescription: "a recipient that is named twice does not get two messages with one index",
            guardian: "if seen[box] then", without: "if false then"
        ) { node, redis in
            _ = try await node.send(["a"], to: ["alice", "alice"], number: 1)
            let reply = try await node.listen(to: "alice")
            return ForeignNode.texts(reply).count <= 1 && reply[1] == "epoch-99"
        },
        MailHazard(
            invariant: "M5", testDescription: "one full recipient refuses the send for all",
            guardian: "if box.is_over then", without: "if false then"
        ) { node, redis in
            var node = node
            node.limits.maxMessages = 1
            _ = try await node.send(["a", "b"], to: ["alice", "bob"], number: 1)
            return try await redis.send("EXISTS", .string(node.key("mail:alice"))).integer == 0
        },
        MailHazard(
            invariant: "M5", testDescription: "at maxmemory a send reaches no recipient",
            guardian: "local is_renewed =",
            without: "redis.call('HDEL', KEYS[1], '') local is_renewed ="
        ) { node, redis in
            try await exhaust(redis)
            return try await node.send(["a"], to: ["alice", "bob"], number: 1).isEmpty
        },
        MailHazard(
            invariant: "M5", testDescription: "at maxmemory reading works, because it frees memory",
            guardian: "call('HDEL', box, '')", without: "call('HGET', box, '')"
        ) { node, redis in
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            try await exhaust(redis)
            return try await node.texts(in: "alice") == ["a"]
        },
        MailHazard(
            invariant: "M4", testDescription: "a part of a cross-partition send that arrives too late has no effect",
            guardian: "if now > request_condition then", without: "if false then"
        ) { node, _ in
            _ = try await node.send(["a"], to: ["alice"], number: 1, part: .deliver(until: 1))
            return try await node.texts(in: "alice").isEmpty
        },
        MailHazard(
            invariant: "M5", testDescription: "probing whether a part would be accepted sends nothing",
            guardian: "if request_mode == 1 then", without: "if false then"
        ) { node, redis in
            _ = try await node.send(["a"], to: ["alice"], number: 1, part: .probe)
            return try await redis.send("DBSIZE").integer == 0
        },
        MailHazard(
            invariant: "M5", testDescription: "a part of a recorded send is not refused by a full mailbox",
            guardian: "local is_over = request_mode ~= 2 and", without: "local is_over ="
        ) { node, _ in
            var node = node
            node.limits.maxMessages = 1
            _ = try await node.send(["a"], to: ["alice"], number: 1)
            _ = try await node.send(["b"], to: ["alice"], number: 2, part: .deliver(until: 99_999_999_999_999))
            return try await node.texts(in: "alice") == ["a", "b"]
        },
        MailHazard(
            invariant: "M4",
            testDescription: "an id of a cross-partition send that was used for another send is refused",
            guardian: "if known ~= fingerprint then", without: "if false then"
        ) { node, _ in
            _ = try await node.begin("x")
            return try await node.begin("x", fingerprint: "g") == ["conflict"]
        },
        MailHazard(
            invariant: "M4", testDescription: "a cross-partition send is finished once",
            guardian: "call('HDEL', record, 'p')", without: "call('HGET', record, 'p')"
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
}

/// Leaves the server no memory for new data.
private func exhaust(_ redis: RedisClient) async throws {
    _ = try await redis.send("CONFIG", "SET", "maxmemory", "1")
}
