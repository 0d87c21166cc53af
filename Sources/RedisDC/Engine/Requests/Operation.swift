// The operations that the engine requests from Redis, and the script of each.
import Hiredis

/// A claim of any session, as the scripts name it: SID:SLOT:NUMBER.
struct ClaimID: Sendable, Hashable, CustomStringConvertible {
    var session: String
    var slot: Int
    /// The number of the request that created the claim.
    var number: UInt64

    init(session: String, slot: Int, number: UInt64) {
        (self.session, self.slot, self.number) = (session, slot, number)
    }

    init?(_ text: String) {
        let parts = text.split(separator: ":")
        guard parts.count == 3, let slot = Int(parts[1]), let number = UInt64(parts[2]) else { return nil }
        self.init(session: String(parts[0]), slot: slot, number: number)
    }

    var description: String { "\(session):\(slot):\(number)" }
}

/// A change of a slot that Redis has confirmed. If the slot does not show it, Redis has lost data: a promoted replica
/// lacks the end of the history, never a part in between.
enum SlotChange: Sendable, Equatable {
    /// A request with this number has written to the slot.
    case written(slot: Int, number: UInt64)
    /// The claim of the request with this number has ended.
    case ended(slot: Int, number: UInt64)
}

/// An operation of the engine. Each is carried out by one script.
///
/// The operations on a claim of the caller take the number of the request that created it. The request's slot is the
/// claim's.
enum Operation: Sendable {
    /// Acquires permits, or waits for them.
    case claim(AcquireRequest)
    /// Ends a claim of the caller in any state. `cohort`: the process's cohort, if the claim is its.
    case release(Resource, claim: UInt64, Family = .permits, cohort: CohortClaim? = nil)
    /// Removes a claim from the queue, unless it has been granted.
    case leave(Resource, claim: UInt64)
    /// Ends a claim of an expired session; with `isForced` of any session.
    case end(ClaimID, name: String, Family, isForced: Bool)
    /// Adds permits.
    case signal(Resource, count: Int)
    case create(Resource)
    case resize(Resource, permits: Int)
    /// Opens a turnstile for all, or locks it.
    case setTurnstile(Resource, isOpen: Bool)
    /// Counts a latch down, once for each id.
    case countDown(Resource, id: String?)
    /// Releases all but `keep` of a lease's permits.
    case reduce(name: String, claim: UInt64, keep: Int)
    /// Reserves more fences for a cohort, and reads whether others wait.
    case extendFences(name: String, claim: UInt64, CohortClaim)
    /// Reads the data of a lease: an item, or a page of the values that all parties of a meeting have brought, without
    /// the `first` ones.
    case read(name: String, claim: UInt64, first: Int)
    /// Turns a lease of one resource into a permit of another. `id`: of a put that takes effect once.
    case pass(Resource, claim: UInt64, from: String, item: [UInt8]?, id: String?)
    /// Continues where an earlier script has stopped at its bound, and grants to waiters that may be overtaken.
    case recheck(name: String)
    case destroy(Resource)
    /// Makes sure that a refused request has no effect, if a copy of it may still arrive: see slots.lua. It has the
    /// number and the slot of that request.
    indirect case settle(Operation)
    /// Extends the session. `seen`: the last change of a slot that Redis has confirmed. `fence`: the highest one that the
    /// process has seen. `connection`: see ``Notices``.
    case heartbeat(seen: SlotChange?, fence: UInt64, connection: UInt64)
    /// Lists the sessions again, in pages: somebody has deleted the key that has them.
    case listSessions(cursor: Int)
    /// Lists the session's claims from this slot on.
    case reconcile(from: Int)
    /// Confirms the arrival of consumed permits whose slots have not been reused.
    case confirm([(slot: Int, number: UInt64)])
    /// Lists claims of an expired session, in slots below `below`, and deletes the session when there are none.
    case sweep(session: String, below: Int?)
    /// Sets a claim of an expired session aside that cannot be ended.
    case setAside(ClaimID, name: String)
}

/// The scripts that serve a resource or a claim. The raw value is the word in {'family', WORD}.
enum Family: String, Sendable {
    case permits = "p"
    case groups = "g"
    case meetings = "m"
    /// A participant of a latch.
    case participant = "l"
    /// The lease of a buffer's item that has been read.
    case item = "i"
    /// A destroyed or broken resource, which is being cleared.
    case clearing = "x"

    /// The family of a claim with this mode: see records.lua.
    init(mode: String) {
        switch mode {
        case "t": self = .groups
        case "i": self = .item
        case "a", "r", "e": self = .meetings
        case "p": self = .participant
        default: self = .permits
        }
    }
}

extension Operation {
    /// The name of the resource; empty for an operation on the session.
    var name: String {
        switch self {
        case .claim(let acquire): acquire.resource.name
        case .signal(let resource, _), .create(let resource), .resize(let resource, _), .setTurnstile(let resource, _),
            .countDown(let resource, _), .destroy(let resource), .pass(let resource, _, _, _, _),
            .release(let resource, _, _, _), .leave(let resource, _):
            resource.name
        case .end(_, let name, _, _), .reduce(let name, _, _), .extendFences(let name, _, _), .read(let name, _, _),
            .recheck(let name), .setAside(_, let name):
            name
        case .settle(let operation): operation.name
        case .heartbeat, .listSessions, .reconcile, .confirm, .sweep: ""
        }
    }

    /// The resource as this operation describes it; `nil` when it only names it.
    var resource: Resource? {
        switch self {
        case .claim(let acquire): acquire.resource
        case .signal(let resource, _), .create(let resource), .resize(let resource, _), .setTurnstile(let resource, _),
            .countDown(let resource, _), .destroy(let resource), .pass(let resource, _, _, _, _):
            resource
        case .settle(let operation): operation.resource
        case .release, .leave, .end, .reduce, .extendFences, .read, .recheck, .heartbeat, .listSessions, .reconcile,
            .confirm, .sweep, .setAside:
            nil
        }
    }

    /// The buffer whose ids the script reads, if the operation is about a put with an id.
    var bufferOfPutID: String? {
        switch self {
        case .claim(let acquire): acquire.putID == nil ? nil : acquire.resource.name
        case .pass(_, _, let buffer, _, let id): id == nil ? nil : buffer
        default: nil
        }
    }

    /// Whether the operation needs a slot that serves nothing else.
    var takesSlot: Bool {
        switch self {
        case .claim, .signal, .create, .resize, .setTurnstile, .countDown, .destroy, .settle: true
        case .release, .leave, .end, .reduce, .extendFences, .read, .pass, .recheck, .heartbeat, .listSessions,
            .reconcile, .confirm, .sweep, .setAside:
            false
        }
    }

    /// The script, if `family` serves the resource; `nil` is the family that the operation expects.
    func script(_ family: Family?) -> RedisScript {
        switch self {
        case .claim(let acquire): acquire.script(family)
        case .release(let resource, _, let expected, let cohort):
            switch family ?? expected {
            case .permits, .clearing:
                resource.kind == .mutex && cohort == nil ? Scripts.releaseMutex : Scripts.release
            case .groups: Scripts.releaseInGroup
            case .meetings: Scripts.releaseParty
            case .participant: Scripts.releaseParticipant
            case .item: Scripts.releaseItem
            }
        case .leave: Scripts.releaseParty
        case .end(_, _, let expected, _):
            switch family ?? expected {
            case .permits, .clearing: Scripts.endPermits
            case .groups: Scripts.endInGroup
            case .meetings: Scripts.endParty
            case .participant: Scripts.endParticipant
            case .item: Scripts.endItem
            }
        case .signal: family == .groups ? Scripts.signalGroups : Scripts.signal
        case .create: family == .groups ? Scripts.createForGroups : Scripts.create
        case .resize: family == .groups ? Scripts.resizeForGroups : Scripts.resize
        case .setTurnstile: Scripts.setTurnstile
        case .countDown: Scripts.countDown
        case .reduce: Scripts.reduce
        case .extendFences: Scripts.extendFences
        case .read: Scripts.read
        case .pass(_, _, _, _, let id): id == nil ? Scripts.pass : Scripts.passOnce
        case .recheck:
            switch family ?? .permits {
            case .permits, .participant, .item: Scripts.recheck
            case .groups: Scripts.recheckGroups
            case .meetings: Scripts.recheckMeeting
            case .clearing: Scripts.clear
            }
        case .destroy: Scripts.destroy
        case .settle(.claim): Scripts.settleClaim
        case .settle: Scripts.settleCall
        case .heartbeat: Scripts.heartbeat
        case .listSessions: Scripts.listSessions
        case .reconcile: Scripts.claims
        case .confirm: Scripts.confirm
        case .sweep: Scripts.sweep
        case .setAside: Scripts.setAside
        }
    }
}
