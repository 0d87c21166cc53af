// The operations on sessions, which the engine itself requests.
import Hiredis

/// The beginning of a session.
enum Join {
    /// - Parameters:
    ///   - session: the session to begin.
    ///   - epoch: that of a new state, random.
    ///   - about: how the session describes itself.
    static func arguments(
        _ session: String, epoch: String, layout: String, about: String, machine: EngineStateMachine
    ) -> [RedisArgument] {
        [
            .string(session), .string(epoch), .integer(machine.settings.ttl.wholeMicroseconds), .string(layout),
            .string(about), .string(String(machine.highestFence)), .string(machine.lostEffects.session),
        ]
    }

    enum Reply {
        /// `next`: as in ``EngineReply/MaintenanceWork``. `lastMayHaveExpired`: whether the session before may have
        /// expired on this server.
        case joined(epoch: String, next: Duration?, lastMayHaveExpired: Bool)
        /// An earlier attempt had created the session, and it has expired since.
        case lost
        /// The namespace has another layout.
        case conflict(layout: String)

        init?(_ reply: RESPValue) {
            let parts = reply.array ?? []
            switch (parts.first?.string, parts.dropFirst().first?.string) {
            case ("ok", let epoch?) where parts.count == 4:
                guard let next = parts[2].integer, let hasExpired = parts[3].integer else { return nil }
                self = .joined(
                    epoch: epoch, next: next > 0 ? .microseconds(next) : nil, lastMayHaveExpired: hasExpired == 1)
            case ("lost", _): self = .lost
            case ("conflict", let layout?): self = .conflict(layout: layout)
            default: return nil
            }
        }
    }
}

/// Extends the session, and compares what the process has seen with what Redis has.
struct Heartbeat: EngineOperation {
    typealias Value = Void

    let session: String
    let ttl: Duration
    /// The last change of a slot that Redis has confirmed.
    let seen: SlotChange?
    /// The highest fence that the process has seen.
    let fence: UInt64
    /// See ``Notices``.
    let connection: UInt64

    var name: String { "" }
    var once: Once { .idempotent }
    var keys: ScriptKeys { .all }
    var arguments: [RedisArgument] {
        let change: [RedisArgument] =
            switch seen {
            case nil: ["", "", ""]
            case .written(let slot, let number): [.integer(slot), .string(String(number)), ""]
            case .ended(let slot, let number): [.integer(slot), .string(String(number)), "1"]
            }
        return [.string(session), .integer(ttl.wholeMicroseconds)] + change
            + [.string(String(fence)), .string(String(connection))]
    }

    func script(_ family: Family?) -> RedisScript { Scripts.heartbeat }

    func reply(ok parts: [RESPValue]) -> EngineReply? {
        guard parts.count == 7, let notices = parts[1].integer, let lost = parts[2].integer,
            let expired = parts[3].array, let names = parts[4].array, let unlisted = parts[5].integer,
            let next = parts[6].integer
        else { return nil }
        let work = EngineReply.MaintenanceWork(
            expired: expired.compactMap(\.string), names: names.compactMap(\.string), isUnlisted: unlisted == 1,
            next: next > 0 ? .microseconds(next) : nil)
        return .heartbeat(notices: UInt64(max(0, notices)), isDataLost: lost == 1, work)
    }
}

/// Lists the sessions again, in pages: somebody has deleted the key that has them.
struct ListSessions: EngineOperation {
    /// The cursor of the next page; 0 after the last.
    typealias Value = Int

    let cursor: Int

    var name: String { "" }
    var once: Once { .idempotent }
    var keys: ScriptKeys { .all }
    var arguments: [RedisArgument] { [.integer(cursor)] }

    func script(_ family: Family?) -> RedisScript { Scripts.listSessions }
}

/// Lists the session's claims from a slot on, for a comparison: see ``EngineStateMachine/reconcile()``.
struct ListClaims: EngineOperation {
    typealias Value = Void

    let session: String
    /// The first slot.
    let from: Int
    /// Whether slots without a claim are listed too, for the numbers of the last requests in them.
    let listsAll: Bool

    var name: String { "" }
    var once: Once { .idempotent }
    var arguments: [RedisArgument] { [.string(session), .integer(from)] + (listsAll ? ["1"] : []) }

    func script(_ family: Family?) -> RedisScript { Scripts.claims }

    func reply(ok parts: [RESPValue]) -> EngineReply? {
        guard parts.count == 3, let next = parts[1].integer, let lines = parts[2].array.flatMap(EngineReply.lines)
        else { return nil }
        return .page(next: next, lines)
    }
}

/// Confirms the arrival of consumed permits whose slots have not been reused.
struct Confirm: EngineOperation {
    typealias Value = Void

    let session: String
    let claims: [Slots.Confirmation]

    var name: String { "" }
    var once: Once { .idempotent }
    var arguments: [RedisArgument] {
        [.string(session), .string(claims.map { "\($0.slot):\($0.number)" }.joined(separator: " "))]
    }

    func script(_ family: Family?) -> RedisScript { Scripts.confirm }
}

/// Lists claims of an expired session, in slots below `below`, and deletes the session when there are none.
struct Sweep: EngineOperation {
    typealias Value = Void

    let session: String
    let below: Int?

    var name: String { "" }
    var once: Once { .idempotent }
    var keys: ScriptKeys { .all }
    var arguments: [RedisArgument] { [.string(session), below.map { .integer($0) } ?? ""] }

    func script(_ family: Family?) -> RedisScript { Scripts.sweep }

    func reply(ok parts: [RESPValue]) -> EngineReply? {
        guard parts.count == 3, let below = parts[1].integer,
            let claims = parts[2].array.flatMap(EngineReply.expiredClaims)
        else { return nil }
        return .sweep(below: below, claims)
    }
}

extension Scripts {
    static let join = RedisScript(embedded: PackageResources.join_lua)
    static let leave = RedisScript(embedded: PackageResources.leave_lua)
    static let heartbeat = RedisScript(
        String(decoding: PackageResources.heartbeat_lua, as: UTF8.self), isHeartbeat: true)
    static let sweep = RedisScript(embedded: PackageResources.sweep_lua)
    static let listSessions = RedisScript(embedded: PackageResources.list_sessions_lua)
    static let claims = RedisScript(embedded: PackageResources.claims_lua)
    static let confirm = RedisScript(embedded: PackageResources.confirm_lua)
}
