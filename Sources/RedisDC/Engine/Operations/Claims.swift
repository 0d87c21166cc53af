// The operations that end claims of all kinds.
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

    /// The field of the claim's slot.
    fileprivate var slotField: RedisArgument { .string("c:\(session):\(slot)") }
}

/// A lease of this process, which an operation is about.
struct HeldClaim: Sendable {
    /// The request that made the claim.
    var request: Acquire
    /// The number of that request.
    var number: UInt64

    /// The name of the resource.
    var name: String { request.resource.name }
}

/// Ends a claim of the caller in any state.
struct Release: EngineOperation {
    typealias Value = Int

    let target: Resource
    /// The number of the request that made the claim.
    let claim: UInt64
    let family: Family
    /// The process's cohort, if the claim is its.
    let cohort: CohortClaim?

    init(_ target: Resource, claim: UInt64, _ family: Family, cohort: CohortClaim? = nil) {
        (self.target, self.claim, self.family, self.cohort) = (target, claim, family, cohort)
    }

    var name: String { target.name }
    var once: Once { .claim(claim, isEnded: true) }
    /// The end of a claim is repeated when the claim is found, but that of a participant by another process would not count
    /// down.
    var remedy: Remedy { family == .participant ? .again : .none }
    var keys: ScriptKeys { target.kind.traits.hasValues ? .all : .resources }
    var arguments: [RedisArgument] {
        [.string(String(claim))] + (cohort.map { [.string(String($0.lastFence))] } ?? [])
    }

    func script(_ family: Family?) -> RedisScript {
        switch family ?? self.family {
        case .permits, .clearing: target.kind == .mutex && cohort == nil ? Scripts.releaseMutex : Scripts.release
        case .groups: Scripts.releaseInGroup
        case .meetings: Scripts.releaseParty
        case .participant: Scripts.releaseParticipant
        case .item: Scripts.releaseItem
        }
    }
}

/// Removes a claim of the caller from the queue, unless it has been granted: then the reply is the grant.
struct Leave: EngineOperation {
    typealias Value = Int

    let target: Resource
    /// The number of the request that made the claim.
    let claim: UInt64

    var name: String { target.name }
    var describedResource: Resource? { target }
    var once: Once { .claim(claim, isEnded: true) }
    var keys: ScriptKeys { target.kind.traits.hasValues ? .all : .resources }
    var arguments: [RedisArgument] { [.string(String(claim)), "w"] }

    func script(_ family: Family?) -> RedisScript { Scripts.releaseParty }
}

/// Ends a claim of an expired session; with `isForced` of any session.
struct End: EngineOperation {
    typealias Value = Int

    let claim: ClaimID
    let name: String
    let family: Family
    let isForced: Bool

    init(_ claim: ClaimID, name: String, _ family: Family, isForced: Bool) {
        (self.claim, self.name, self.family, self.isForced) = (claim, name, family, isForced)
    }

    var once: Once { .idempotent }
    var keys: ScriptKeys { .all }
    var arguments: [RedisArgument] {
        [claim.slotField, isForced ? "lost" : "", .string("t:" + name), .string(String(claim.number))]
    }

    func script(_ family: Family?) -> RedisScript {
        switch family ?? self.family {
        case .permits, .clearing: Scripts.endPermits
        case .groups: Scripts.endInGroup
        case .meetings: Scripts.endParty
        case .participant: Scripts.endParticipant
        case .item: Scripts.endItem
        }
    }
}

/// Sets a claim of an expired session aside that cannot be ended.
struct SetAside: EngineOperation {
    typealias Value = Bool

    let claim: ClaimID
    let name: String

    var once: Once { .idempotent }
    var keys: ScriptKeys { .all }
    var arguments: [RedisArgument] { [.string(claim.session), .integer(claim.slot), .string(String(claim.number))] }

    func script(_ family: Family?) -> RedisScript { Scripts.setAside }
}

/// Makes sure that a refused request has no effect, if a copy of it may still arrive: see slots.lua. It has the number and
/// the slot of that request.
struct Settle: EngineOperation {
    typealias Value = Void

    let refused: any EngineOperation

    var name: String { refused.name }
    var describedResource: Resource? { refused.describedResource }
    /// A held claim is not taken for another one's: see begin_claim in slots.lua.
    var field: String { "" }
    var once: Once { .slot }
    var arguments: [RedisArgument] { [] }

    func script(_ family: Family?) -> RedisScript {
        refused is Acquire ? Scripts.settleClaim : Scripts.settleCall
    }

    func reply(_ number: Int, more: Bool) -> EngineReply? {
        number == -1 ? .settled : refused.reply(number, more: more)
    }
}

extension Scripts {
    static let releaseMutex = RedisScript(embedded: PackageResources.release_mutex_lua)
    static let release = RedisScript(embedded: PackageResources.release_lua)
    static let releaseInGroup = RedisScript(embedded: PackageResources.release_in_group_lua)
    static let releaseParty = RedisScript(embedded: PackageResources.release_party_lua)
    static let releaseParticipant = RedisScript(embedded: PackageResources.release_participant_lua)
    static let releaseItem = RedisScript(embedded: PackageResources.release_item_lua)

    static let endPermits = RedisScript(embedded: PackageResources.end_permits_lua)
    static let endInGroup = RedisScript(embedded: PackageResources.end_in_group_lua)
    static let endParty = RedisScript(embedded: PackageResources.end_party_lua)
    static let endParticipant = RedisScript(embedded: PackageResources.end_participant_lua)
    static let endItem = RedisScript(embedded: PackageResources.end_item_lua)

    static let setAside = RedisScript(embedded: PackageResources.set_aside_lua)

    /// Settles a refused request that creates a claim, and one that creates none.
    static let settleClaim = RedisScript(embedded: PackageResources.settle_claim_lua)
    static let settleCall = RedisScript(embedded: PackageResources.settle_call_lua)
}
