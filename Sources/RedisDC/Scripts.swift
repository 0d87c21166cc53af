// The scripts of the module: the files of Scripts/, embedded in the binary at build time. Their sources are in Lua/.
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
    static let heartbeat = RedisScript(
        String(decoding: PackageResources.heartbeat_lua, as: UTF8.self), isHeartbeat: true)
    static let sweep = RedisScript(embedded: PackageResources.sweep_lua)
    static let setAside = RedisScript(embedded: PackageResources.set_aside_lua)
    static let listSessions = RedisScript(embedded: PackageResources.list_sessions_lua)
    static let claims = RedisScript(embedded: PackageResources.claims_lua)
    static let confirm = RedisScript(embedded: PackageResources.confirm_lua)

    // MARK: For operators

    static let inspect = RedisScript(embedded: PackageResources.inspect_lua)
    static let list = RedisScript(embedded: PackageResources.list_lua)

    // MARK: Permits: mutexes, semaphores, read-write locks, conditions, turnstiles, latches, buffers

    static let acquire = RedisScript(embedded: PackageResources.acquire_lua)
    static let releaseMutex = RedisScript(embedded: PackageResources.release_mutex_lua)
    static let release = RedisScript(embedded: PackageResources.release_lua)
    static let endPermits = RedisScript(embedded: PackageResources.end_permits_lua)
    static let signal = RedisScript(embedded: PackageResources.signal_lua)
    static let create = RedisScript(embedded: PackageResources.create_lua)
    static let resize = RedisScript(embedded: PackageResources.resize_lua)
    static let setTurnstile = RedisScript(embedded: PackageResources.set_turnstile_lua)
    static let reduce = RedisScript(embedded: PackageResources.reduce_lua)
    /// Reserves more fences for a cohort that holds a mutex.
    static let extendFences = RedisScript(embedded: PackageResources.extend_fences_lua)
    static let recheck = RedisScript(embedded: PackageResources.recheck_lua)

    // MARK: Latches

    static let waitForLatch = RedisScript(embedded: PackageResources.wait_for_latch_lua)
    static let countDown = RedisScript(embedded: PackageResources.count_down_lua)
    static let participate = RedisScript(embedded: PackageResources.participate_lua)
    static let releaseParticipant = RedisScript(embedded: PackageResources.release_participant_lua)
    static let endParticipant = RedisScript(embedded: PackageResources.end_participant_lua)

    // MARK: Buffers

    static let pass = RedisScript(embedded: PackageResources.pass_lua)
    /// The same for a put with an id, and the request for its place.
    static let passOnce = RedisScript(embedded: PackageResources.pass_once_lua)
    static let acquireForPut = RedisScript(embedded: PackageResources.acquire_for_put_lua)
    static let releaseItem = RedisScript(embedded: PackageResources.release_item_lua)
    static let endItem = RedisScript(embedded: PackageResources.end_item_lua)

    // MARK: Groups: mutexes and semaphores with a light switch

    static let acquireInGroup = RedisScript(embedded: PackageResources.acquire_in_group_lua)
    static let releaseInGroup = RedisScript(embedded: PackageResources.release_in_group_lua)
    static let endInGroup = RedisScript(embedded: PackageResources.end_in_group_lua)
    static let signalGroups = RedisScript(embedded: PackageResources.signal_groups_lua)
    static let createForGroups = RedisScript(embedded: PackageResources.create_for_groups_lua)
    static let resizeForGroups = RedisScript(embedded: PackageResources.resize_for_groups_lua)
    static let recheckGroups = RedisScript(embedded: PackageResources.recheck_groups_lua)

    // MARK: Meetings: barriers, phasers, exchangers

    static let arrive = RedisScript(embedded: PackageResources.arrive_lua)
    static let register = RedisScript(embedded: PackageResources.register_lua)
    static let releaseParty = RedisScript(embedded: PackageResources.release_party_lua)
    static let endParty = RedisScript(embedded: PackageResources.end_party_lua)
    static let recheckMeeting = RedisScript(embedded: PackageResources.recheck_meeting_lua)

    // MARK: All resources

    /// Reads the item of a buffer that a lease takes, or the values of a meeting.
    static let read = RedisScript(embedded: PackageResources.read_lua)
    static let destroy = RedisScript(embedded: PackageResources.destroy_lua)
    static let clear = RedisScript(embedded: PackageResources.clear_lua)
    /// Settles a refused request that creates a claim, and one that creates none.
    static let settleClaim = RedisScript(embedded: PackageResources.settle_claim_lua)
    static let settleCall = RedisScript(embedded: PackageResources.settle_call_lua)
}
