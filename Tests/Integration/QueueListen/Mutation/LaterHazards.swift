// The invariants of sends that are due later: one effect, whoever calls, cancels and takes them, and in whichever order.
import Hiredis
import TestSupport

@testable import QueueListen

extension MailHazard {
    static let later: [MailHazard] = [
        MailHazard(
            invariant: "M4", testDescription: "a copy of a call that arrives after it was cancelled has no effect",
            guardian: "local is_repeated = string.find(calls, call_2, 1, true)", without: "local is_repeated = false"
        ) { node, _ in
            for call in ["call one", "call two"] {
                _ = try await node.schedule("x", call: call)
                _ = try await node.cancel("x")
            }
            _ = try await node.schedule("x", call: "call one")
            return try await node.takeDue().isEmpty
        },
        MailHazard(
            invariant: "M4", testDescription: "an id that was scheduled for another send is refused",
            guardian: "and not is_same and not (known_rule and rule ~= '') then", without: "and false then"
        ) { node, _ in
            _ = try await node.schedule("x", call: "call one")
            return try await node.schedule("x", call: "call two", fingerprint: "g") == ["conflict"]
        },
        MailHazard(
            invariant: "M5", testDescription: "no more sends are scheduled than the caller allows",
            guardian: "if not is_waiting and count >= tonumber(maximum) then", without: "if false then"
        ) { node, _ in
            for id in ["x", "y"] { _ = try await node.schedule(id, call: "call one") }
            return try await node.schedule("z", call: "call one") == ["full"]
        },
        MailHazard(
            invariant: "M4", testDescription: "a send whose time is long ago is kept until it is carried out",
            guardian: "math.max(due, now) + lifetime", without: "due + lifetime"
        ) { node, _ in
            _ = try await node.schedule("x", call: "call one")
            return try await node.schedule("x", call: "call two", fingerprint: "g") == ["conflict"]
        },
        MailHazard(
            invariant: "M5", testDescription: "a send that one node has taken is not immediately taken by another",
            guardian: "call('ZADD', later, format('%d', now + pause), id)", without: "call('ZCARD', later)"
        ) { node, _ in
            _ = try await node.schedule("x", call: "call one")
            guard try await node.takeDue() == ["x"] else { return false }
            return try await node.takeDue().isEmpty
        },
        MailHazard(
            invariant: "M5", testDescription: "a send that was taken is not cancelled",
            guardian: "(not score or tonumber(score) ~= tonumber(due)) then", without: "not score then"
        ) { node, _ in
            _ = try await node.schedule("x", call: "call one")
            _ = try await node.takeDue()
            return try await node.cancel("x") == ["0"]
        },
        MailHazard(
            invariant: "M4", testDescription: "a cancellation that is repeated before the lost call holds",
            guardian: "call('HSET', record, 'f', '', 'd', '0', 'c', cancelled, 'x', '1')",
            without: "call('HLEN', record)"
        ) { node, _ in
            _ = try await node.cancel("x", call: "call one")
            _ = try await node.schedule("x", call: "call one")
            return try await node.takeDue().isEmpty
        },
        MailHazard(
            invariant: "M4",
            testDescription: "a copy of a call that changed nothing does not schedule what was cancelled since",
            guardian: "elseif not is_repeated then", without: "elseif false then"
        ) { node, _ in
            for call in ["call one", "call two"] { _ = try await node.schedule("x", call: call) }
            _ = try await node.cancel("x")
            _ = try await node.schedule("x", call: "call two")
            return try await node.takeDue().isEmpty
        },
        MailHazard(
            invariant: "M4", testDescription: "a lost call of a cancelled send has no effect after the cancellation",
            guardian: "cancelled == '' and calls or cancelled", without: "calls"
        ) { node, _ in
            _ = try await node.schedule("x", call: "call one")
            _ = try await node.cancel("x", call: "call twocall one")
            _ = try await node.schedule("x", call: "call two")
            return try await node.takeDue().isEmpty
        },
        MailHazard(
            invariant: "M4", testDescription: "a recurring send that Redis had lost does not replace a later one",
            guardian: "and not (lost and lost <= version)", without: ""
        ) { node, _ in
            try await node.declare("x", call: "call one", fingerprint: "old")
            try await node.declare("x", call: "call two", fingerprint: "new", lost: "2")
            try await node.declare("x", call: "call 111", fingerprint: "old", lost: "1")
            return try await node.fingerprint("x") == "new"
        },
        MailHazard(
            invariant: "M4", testDescription: "a recurring send is not recorded with a time that is over",
            guardian: "if rule ~= '' and not lost and due <= now then", without: "if false then"
        ) { node, _ in
            try await node.declare("x", call: "call one", due: "1")
            return try await node.takeDue().isEmpty
        },
        MailHazard(
            invariant: "M4", testDescription: "the end of an occurrence that arrives again does not end the next one",
            guardian: "if fields[1] ~= due or not fields[2] then", without: "if false then"
        ) { node, _ in
            try await node.declare("x", call: "call one", due: "1000", lost: "1")
            guard try await node.advance("x", from: "1000", to: "2000") == ["1", "1"] else { return false }
            _ = try await node.advance("x", from: "2000", to: "9000000000000")
            _ = try await node.advance("x", from: "1000", to: "2000")
            return try await node.takeDue().isEmpty
        },
        MailHazard(
            invariant: "M4",
            testDescription: "an occurrence that one node delivers is not immediately taken by another",
            guardian: "call('ZADD', later, string.format('%d', now + pause), occurrence)",
            without: "call('ZADD', later, '1', occurrence)"
        ) { node, _ in
            try await node.declare("x", call: "call one", due: "1000", lost: "1")
            _ = try await node.advance("x", from: "1000", to: "9000000000000")
            return try await node.takeDue().isEmpty
        },
        MailHazard(
            invariant: "M5",
            testDescription: "occurrences do not pile up beyond the number of sends that the caller allows",
            guardian: "local is_full = call('ZCARD', later) >= tonumber(arguments[10])",
            without: "local is_full = false"
        ) { node, _ in
            try await node.declare("x", call: "call one", due: "1000", lost: "1")
            _ = try await node.schedule("y", call: "call one")
            return try await node.advance("x", from: "1000", to: "9000000000000") == ["1", "0"]
        },
        MailHazard(
            invariant: "M5", testDescription: "a recurring send is kept however late it is",
            guardian: "call('PERSIST', record)", without: "call('PTTL', record)"
        ) { node, redis in
            // The record of a cancelled one expires.
            _ = try await node.schedule("x", call: "call one")
            _ = try await node.cancel("x")
            try await node.declare("x", call: "call two")
            return try await redis.send("PTTL", .string(node.key("later:x"))).integer == -1
        },
    ]
}

extension ForeignNode {
    /// Schedules a send that is due since long ago; at most two wait.
    fileprivate func schedule(_ id: String, call: String, fingerprint: String = "f") async throws -> Reply {
        try await run(
            "schedule", [key("meta"), key("later:\(id)"), key("laters")],
            [
                "1", .string(id), .string(fingerprint), "encodedSend", .string(call), "1", "", "60000", "2", "",
                "",
            ])
    }

    /// Schedules a recurring send.
    fileprivate func declare(
        _ id: String, call: String, fingerprint: String = "f", due: String = "9000000000000", lost: String = ""
    ) async throws {
        _ = try await run(
            "schedule", [key("meta"), key("later:\(id)"), key("laters")],
            [
                "1", .string(id), .string(fingerprint), "encodedSend", .string(call), .string(due), "", "60000", "2",
                "once every 1000 0", .string(lost),
            ])
    }

    fileprivate func advance(_ id: String, from due: String, to next: String) async throws -> Reply {
        try await run(
            "advance", [key("later:\(id)"), key("laters"), key("later:\(id)@\(due)")],
            [
                .string(id), .string(due), .string(next), "60000", .string("\(id)@\(due)"), "g", "encodedSend", "60000",
                "60000", "2",
            ])
    }

    fileprivate func fingerprint(_ id: String) async throws -> String? {
        try await redis.send("HGET", .string(key("later:\(id)")), "f").string
    }

    fileprivate func takeDue() async throws -> Reply {
        Array(try await run("take_due", [key("laters")], ["60000", "10"]).dropFirst(2))
    }

    fileprivate func cancel(_ id: String, call: String = "") async throws -> Reply {
        try await run("cancel", [key("later:\(id)"), key("laters")], [.string(id), "60000", .string(call)])
    }
}
