// The invariants of sends that are due later: one effect, whoever calls, cancels and takes them, and in whichever order.
import Hiredis
import TestSupport

@testable import QueueListen

extension MailHazard {
    static let later: [MailHazard] = [
        MailHazard(
            invariant: "M4", testDescription: "a copy of a call that arrives after it was cancelled has no effect",
            guardian: "or is_cancelled and not is_repeated", without: "or is_cancelled"
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
            guardian: "if known and not is_repeated and not is_cancelled and known ~= fingerprint then",
            without: "if false then"
        ) { node, _ in
            _ = try await node.schedule("x", call: "call one")
            return try await node.schedule("x", call: "call two", fingerprint: "g") == ["conflict"]
        },
        MailHazard(
            invariant: "M5", testDescription: "no more sends are scheduled than the caller allows",
            guardian: "if count >= tonumber(maximum) then", without: "if false then"
        ) { node, _ in
            for id in ["x", "y"] { _ = try await node.schedule(id, call: "call one") }
            return try await node.schedule("z", call: "call one") == ["full"]
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
            guardian: "or tonumber(score) ~= tonumber(due) then", without: "then"
        ) { node, _ in
            _ = try await node.schedule("x", call: "call one")
            _ = try await node.takeDue()
            return try await node.cancel("x") == ["0"]
        },
        MailHazard(
            invariant: "M4", testDescription: "a cancellation that is repeated before the lost call holds",
            guardian: "call('HSET', record, 'f', '', 'd', '0', 'c', call_2, 'x', '1')",
            without: "call('HLEN', record)"
        ) { node, _ in
            _ = try await node.cancel("x", call: "call one")
            _ = try await node.schedule("x", call: "call one")
            return try await node.takeDue().isEmpty
        },
    ]
}

extension ForeignNode {
    /// Schedules a send that is due now; at most two wait.
    fileprivate func schedule(_ id: String, call: String, fingerprint: String = "f") async throws -> Reply {
        try await run(
            "schedule", [key("meta"), key("later:\(id)"), key("laters")],
            ["1", .string(id), .string(fingerprint), "encodedSend", .string(call), "", "0", "60000", "2"])
    }

    fileprivate func takeDue() async throws -> Reply {
        Array(try await run("take_due", [key("laters")], ["60000", "10"]).dropFirst(2))
    }

    fileprivate func cancel(_ id: String, call: String = "") async throws -> Reply {
        try await run("cancel", [key("later:\(id)"), key("laters")], [.string(id), "60000", .string(call)])
    }
}
