// The Lua files of Scripts/, embedded in the binary at build time, and the scripts that are composed of them.
import Hiredis

enum Scripts {
    static let classicCreate = RedisScript(embedded: PackageResources.classic_create_lua)
    static let classicDestroy = RedisScript(embedded: PackageResources.classic_destroy_lua)
    static let classicPassOn = RedisScript(embedded: PackageResources.classic_pass_on_lua)
    static let classicGiveBack = RedisScript(embedded: PackageResources.classic_give_back_lua)

    static let rateLimit = RedisScript(embedded: PackageResources.rate_limit_lua)

    // MARK: Sessions

    static let join = RedisScript(embedded: PackageResources.join_lua)
    static let leave = RedisScript(embedded: PackageResources.leave_lua)
    static let heartbeat = RedisScript(text(PackageResources.heartbeat_lua), isHeartbeat: true)
    static let sweep = RedisScript(embedded: PackageResources.sweep_lua)
    static let setAside = RedisScript(embedded: PackageResources.set_aside_lua)
    static let listSessions = RedisScript(embedded: PackageResources.list_sessions_lua)
    static let claims = RedisScript(embedded: PackageResources.claims_lua)
    static let confirm = RedisScript(embedded: PackageResources.confirm_lua)

    // MARK: For operators

    static let inspect = RedisScript(embedded: PackageResources.inspect_lua)
    static let list = RedisScript(embedded: PackageResources.list_lua)

    // MARK: Permits: mutexes, semaphores, read-write locks, conditions, turnstiles, latches, buffers

    static let acquire = engine([.permits, .slot, .newClaim, .freeSlot, .resource, .acquire])
    static let releaseMutex = engine([.releaseMutex, .ownClaim, .endPermits, .endSlot, .grant, .write])
    static let release = engine([.ownClaim, .endPermits, .endSlot, .grant, .write])
    static let endPermits = engine([.otherClaim, .endPermits, .endSlot, .grant, .write])
    static let signal = engine([.permits, .slot, .newCall, .freeSlot, .resource, .signal, .call, .grant, .write])
    static let create = engine([.permits, .slot, .newCall, .freeSlot, .resource, .create, .call, .grant, .write])
    static let resize = engine([.permits, .slot, .newCall, .freeSlot, .resource, .resize, .call, .grant, .write])
    static let setTurnstile = engine([
        .permits, .slot, .newCall, .freeSlot, .resource, .setTurnstile, .call, .grant, .write,
    ])
    static let reduce = engine([.reduce, .grant, .write])
    /// Reserves more fences for a cohort that holds a mutex.
    static let extendFences = engine([.extendFences])
    static let recheck = engine([.permits, .recheck, .grant, .write])

    // MARK: Latches

    static let waitForLatch = engine([.permits, .slot, .newClaim, .freeSlot, .resource, .latch, .acquire])
    static let countDown = engine([
        .permits, .slot, .newCall, .freeSlot, .resource, .latch, .countDown, .call, .grant, .write,
    ])
    static let participate = engine([.permits, .slot, .newClaim, .freeSlot, .resource, .latch, .register])
    static let releaseParticipant = engine([.ownClaim, .endParticipant, .endSlot, .grant, .write])
    static let endParticipant = engine([.otherClaim, .endParticipant, .endSlot, .grant, .write])

    // MARK: Buffers

    static let pass = engine([.permits, .pass, .resource, .passPermit, .grant, .deleteValues, .write])
    /// The same for a put with an id, and the request for its place.
    static let passOnce = engine([
        .permits, .pass, .resource, .knownPut, .passPermit, .rememberPut, .grant, .deleteValues, .write,
    ])
    static let acquireForPut = engine([.permits, .slot, .newClaim, .freeSlot, .resource, .knownPut, .acquire])
    static let releaseItem = engine([.ownClaim, .endItem, .endSlot, .grant, .deleteValues, .write])
    static let endItem = engine([.otherClaim, .endItem, .endSlot, .grant, .deleteValues, .write])

    // MARK: Groups: mutexes and semaphores with a light switch

    static let acquireInGroup = engine([.groups, .slot, .newClaim, .freeSlot, .resource, .groupAcquire, .write])
    static let releaseInGroup = engine([.ownClaim, .endGroup, .endSlot, .groupGrant, .write])
    static let endInGroup = engine([.otherClaim, .endGroup, .endSlot, .groupGrant, .write])
    static let signalGroups = engine([
        .groups, .slot, .newCall, .freeSlot, .resource, .signal, .call, .groupGrant, .write,
    ])
    static let createForGroups = engine([
        .groups, .slot, .newCall, .freeSlot, .resource, .create, .call, .groupGrant, .write,
    ])
    static let resizeForGroups = engine([
        .groups, .slot, .newCall, .freeSlot, .resource, .resize, .call, .groupGrant, .write,
    ])
    static let recheckGroups = engine([.groups, .recheck, .groupGrant, .write])

    // MARK: Meetings: barriers, phasers, exchangers

    static let arrive = engine([
        .meetings, .slot, .newClaim, .freeSlot, .resource, .arrive, .meetingGrant, .deleteValues, .write,
    ])
    static let register = engine([.meetings, .slot, .newClaim, .freeSlot, .resource, .register])
    static let releaseParty = engine([.ownClaim, .endMeeting, .endSlot, .meetingGrant, .deleteValues, .write])
    static let endParty = engine([.otherClaim, .endMeeting, .endSlot, .meetingGrant, .deleteValues, .write])
    static let recheckMeeting = engine([.meetings, .recheck, .meetingGrant, .deleteValues, .write])

    // MARK: All resources

    /// Reads the item of a buffer that a lease takes, or the values of a meeting.
    static let read = RedisScript(embedded: PackageResources.read_lua)
    static let destroy = engine([.slot, .newCall, .freeSlot, .destroy, .clearStep, .deleteValues, .write])
    static let clear = engine([.clear, .recheck, .clearStep, .deleteValues, .write])
    /// Settles a refused request that creates a claim, and one that creates none.
    static let settleClaim = engine([.slot, .newClaim, .freeSlot, .settle])
    static let settleCall = engine([.slot, .newCall, .freeSlot, .settle])

    private static let layout = ScriptLayout(text(PackageResources.layout_lua))

    private static func engine(_ parts: [Part]) -> RedisScript { RedisScript(layout.script(parts.map(\.source))) }

    fileprivate static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

/// A part of a script: a file of Scripts/.
private enum Part: Equatable {
    case acquire, arrive, call, clear, clearStep, countDown, create, deleteValues, destroy, endGroup, endItem,
        endMeeting,
        endParticipant, endPermits, endSlot, extendFences, freeSlot, grant, groupAcquire, groupGrant, groups,
        knownPut, latch,
        meetingGrant, meetings, newCall, newClaim, otherClaim, ownClaim, pass, passPermit, permits, recheck,
        reduce, register, releaseMutex, rememberPut, resize, resource, setTurnstile, settle, signal, slot, write

    var source: String {
        let bytes =
            switch self {
            case .acquire: PackageResources.acquire_lua
            case .arrive: PackageResources.arrive_lua
            case .call: PackageResources.call_lua
            case .clear: PackageResources.clear_lua
            case .clearStep: PackageResources.clear_step_lua
            case .countDown: PackageResources.count_down_lua
            case .create: PackageResources.create_lua
            case .deleteValues: PackageResources.delete_values_lua
            case .destroy: PackageResources.destroy_lua
            case .endGroup: PackageResources.end_group_lua
            case .endItem: PackageResources.end_item_lua
            case .endMeeting: PackageResources.end_meeting_lua
            case .endParticipant: PackageResources.end_participant_lua
            case .endPermits: PackageResources.end_permits_lua
            case .endSlot: PackageResources.end_slot_lua
            case .extendFences: PackageResources.extend_fences_lua
            case .freeSlot: PackageResources.free_slot_lua
            case .grant: PackageResources.grant_lua
            case .groupAcquire: PackageResources.group_acquire_lua
            case .groupGrant: PackageResources.group_grant_lua
            case .groups: PackageResources.groups_lua
            case .knownPut: PackageResources.known_put_lua
            case .latch: PackageResources.latch_lua
            case .meetingGrant: PackageResources.meeting_grant_lua
            case .meetings: PackageResources.meetings_lua
            case .newCall: PackageResources.new_call_lua
            case .newClaim: PackageResources.new_claim_lua
            case .otherClaim: PackageResources.other_claim_lua
            case .ownClaim: PackageResources.own_claim_lua
            case .pass: PackageResources.pass_lua
            case .passPermit: PackageResources.pass_permit_lua
            case .permits: PackageResources.permits_lua
            case .recheck: PackageResources.recheck_lua
            case .reduce: PackageResources.reduce_lua
            case .register: PackageResources.register_lua
            case .releaseMutex: PackageResources.release_mutex_lua
            case .rememberPut: PackageResources.remember_put_lua
            case .resize: PackageResources.resize_lua
            case .resource: PackageResources.resource_lua
            case .setTurnstile: PackageResources.set_turnstile_lua
            case .settle: PackageResources.settle_lua
            case .signal: PackageResources.signal_lua
            case .slot: PackageResources.slot_lua
            case .write: PackageResources.write_lua
            }
        return Scripts.text(bytes)
    }
}
