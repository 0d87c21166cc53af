// A numbered request of a session, and the arguments of its script.
import CoordinationBase
import Hiredis

/// A request of a session. It takes effect once, even if it is sent several times under the same number: see slots.lua.
struct EngineRequest: Sendable {
    var session: String
    var number: UInt64
    /// The slot that serves the request, or that has the claim it is about; `nil` when it needs none.
    var slot: Int?
    var operation: Operation
    /// The family whose script must run, if it is not the one that the operation expects.
    var family: Family?

    var script: RedisScript { operation.script(family) }

    /// Whether the script needs all keys of the partition: the sessions, or the values of buffers and exchangers.
    var usesAllKeys: Bool {
        switch operation {
        case .heartbeat, .listSessions, .sweep, .setAside, .read, .pass, .recheck, .destroy, .end: true
        case .claim(let acquire): acquire.resource.kind == .exchanger
        case .release(let resource, _, _, _), .leave(let resource, _):
            [.exchanger, .bufferItems].contains(resource.kind)
        default: false
        }
    }

    /// The change of a slot that this reply proves; `nil` when there is none.
    func change(by reply: EngineReply) -> SlotChange? {
        switch (operation, reply) {
        case (.confirm(let claims), .done):
            return claims.last.map { .ended(slot: $0.slot, number: $0.number) }
        case (.release(_, let claim, _, _), .done(count: 1..., _)), (.leave(_, let claim), .done(count: 1..., _)),
            (.pass(_, let claim, _, _, _), .done(count: 1..., _)):
            return slot.map { .ended(slot: $0, number: claim) }
        case (_, .granted), (_, .queued), (_, .done), (_, .settled):
            return operation.takesSlot ? slot.map { .written(slot: $0, number: number) } : nil
        default: return nil
        }
    }

    func arguments(ttl: Duration) -> [RedisArgument] {
        var head: [RedisArgument] {
            [.string("c:\(session):\(slot ?? 0)"), .string(String(number)), .string("t:" + operation.name)]
        }
        switch operation {
        case .claim(let acquire): return head + acquire.arguments
        case .release(_, let claim, _, let cohort):
            return head + [.string(String(claim))] + (cohort.map { [.string(String($0.lastFence))] } ?? [])
        case .extendFences(_, let claim, let cohort):
            return head + [.string(String(claim)), .string(String(cohort.lastFence))]
        case .read(_, let claim, let first):
            return head + [.string(String(claim))] + (first == 0 ? [] : [.integer(first)])
        case .leave(_, let claim): return head + [.string(String(claim)), "w"]
        case .reduce(_, let claim, let keep): return head + [.string(String(claim)), .integer(keep)]
        case .end(let claim, let name, _, let isForced):
            return [
                .string("c:\(claim.session):\(claim.slot)"), isForced ? "lost" : "", .string("t:" + name),
                .string(String(claim.number)),
            ]
        case .pass(let resource, let claim, let from, let item, let id):
            return head + resource.arguments + [.string(String(claim)), .string("t:" + from)]
                + (item.map { [.bytes($0)] } ?? []) + (id.map { [.string($0)] } ?? [])
        case .signal(let resource, let count):
            return head + resource.arguments + (count == 1 ? [] : [.integer(count)])
        case .create(let resource): return head + resource.arguments
        case .resize(let resource, let permits): return head + resource.existing.arguments + [.integer(permits)]
        case .setTurnstile(let resource, let isOpen): return head + resource.arguments + [isOpen ? "1" : "0"]
        case .countDown(let resource, let id): return head + resource.arguments + [.string(id ?? "")]
        case .destroy(let resource): return head + [.string(resource.letters)]
        case .settle: return head.dropLast() + [""]
        case .recheck(let name): return [.string(name)]
        case .heartbeat(let seen, let fence, let connection):
            let change: [RedisArgument] =
                switch seen {
                case nil: ["", "", ""]
                case .written(let slot, let number): [.integer(slot), .string(String(number)), ""]
                case .ended(let slot, let number): [.integer(slot), .string(String(number)), "1"]
                }
            return [.string(session), .integer(ttl.wholeMicroseconds)] + change
                + [.string(String(fence)), .string(String(connection))]
        case .listSessions(let cursor): return [.integer(cursor)]
        case .reconcile(let from): return [.string(session), .integer(from)]
        case .confirm(let claims):
            return [.string(session), .string(claims.map { "\($0.slot):\($0.number)" }.joined(separator: " "))]
        case .sweep(let session, let below): return [.string(session), below.map { .integer($0) } ?? ""]
        case .setAside(let claim, _):
            return [.string(claim.session), .integer(claim.slot), .string(String(claim.number))]
        }
    }
}
