// A numbered request of a session, and the arguments of its script (Scripts/engine_*.lua).
import CoordinationBase
import Hiredis

/// A request of a session. It takes effect once, even if it is sent several times under the same number.
struct EngineRequest: Sendable {
    var session: String
    var number: UInt64
    /// The number up to which all replies have arrived: the server may delete its copies of them.
    var settled: UInt64?
    /// The numbers of requests whose consumed permits have arrived, at most `EngineStateMachine.maxConfirmations`.
    var confirmations: [UInt64] = []
    var operation: Operation

    /// The maximum number of claims in one page of a reconciliation.
    static let reconcilePage = 1000

    var script: RedisScript { operation.script }

    /// Whether the script declares the partition's sessions key.
    var usesSessionsKey: Bool { if case .heartbeat = operation { true } else { false } }

    func arguments(ttl: Duration) -> [RedisArgument] {
        let head: [RedisArgument] = [
            .string(session), .string(String(number)), settled.map { .string(String($0)) } ?? "",
            confirmations.isEmpty ? "" : .string(confirmations.map { String($0) }.joined(separator: ",")),
            .string(operation.name),
        ]
        switch operation {
        case .claim(let acquire):
            return head + acquire.resource.arguments + acquire.arguments
        case .release(_, let claim, let owner, let force):
            return head + [.string(String(claim)), .string(owner ?? ""), force ? "1" : "0"]
        case .leave(_, let claim): return head + [.string(String(claim)), "", "w"]
        case .read(_, let claim): return head + [.string(String(claim))]
        case .pass(let resource, let claim, let from, let item):
            return head + resource.arguments + [.string(String(claim)), .string(from)]
                + (item.map { [.bytes($0)] } ?? [])
        case .signal(let resource, let count): return head + resource.arguments + [.integer(count)]
        case .create(let resource): return head + resource.arguments
        case .resize(let resource, let permits): return head + resource.existing.arguments + [.integer(permits)]
        case .setTurnstile(let resource, let isOpen): return head + resource.arguments + [isOpen ? "1" : "0"]
        case .countDown(let resource, let id): return head + resource.arguments + [.string(id ?? "")]
        case .reduce(_, let claim, let keep): return head + [.string(String(claim)), .integer(keep)]
        case .destroy(let resource): return head + [.string(resource.kind.rawValue)]
        case .give: return head
        case .heartbeat: return head + [.integer(ttl.wholeMicroseconds)]
        case .reconcile(let after): return head + [.string(after), .integer(Self.reconcilePage)]
        }
    }
}
