// A caller's request for permits.
import Hiredis

/// A request for permits of a resource, or for a place at a barrier, phaser, exchanger or latch.
///
/// A class, because several collections refer to it while the caller waits.
final class Acquire: EngineOperation {
    typealias Value = Void

    /// The caller's action at the resource.
    enum Action: Sendable {
        /// Acquires permits.
        case acquire
        /// Arrives at a barrier, phaser or exchanger, and waits for the other parties.
        case arrive
        /// Registers as one more party of a phaser or participant of a latch. This never waits.
        case register
    }

    /// The use of the permits after the grant.
    enum Mode: Sendable {
        /// They are consumed.
        case consume
        /// They return when the lease is released, at the latest when the session ends.
        case lease
        /// A group holds one permit together, until its last member releases.
        case group
    }

    /// A property that few requests have. One reference, so that all others need little memory for it.
    indirect enum Detail: Sendable {
        /// The group that holds one permit together.
        case group(String)
        /// The bytes that the caller brings to an exchanger.
        case brings([UInt8])
        /// The claim to release as soon as this one is queued or granted: a condition's mutex.
        case releases(UInt64)
        /// The lease of a mutex is for the tasks of this process, one after the other.
        case cohort(CohortClaim)
        /// The id of the put that a place of a buffer is for.
        case puts(id: String)
    }

    let resource: Resource
    let action: Action
    let count: Int
    let mode: Mode
    /// Whether the request waits in the queue when there are not enough permits.
    let mayQueue: Bool
    /// Whether it precedes all requests that are not preferred, and does not queue behind them.
    let isPreferred: Bool
    /// Whether the wait fails with the session, instead of queueing again in the next one.
    let failsOnLoss: Bool
    let detail: Detail?

    init(
        resource: Resource, action: Action = .acquire, count: Int = 1, mode: Mode = .consume, mayQueue: Bool = true,
        isPreferred: Bool = false, failsOnLoss: Bool = false, detail: Detail? = nil
    ) {
        (self.resource, self.action, self.count, self.mode, self.mayQueue) = (resource, action, count, mode, mayQueue)
        (self.isPreferred, self.failsOnLoss, self.detail) = (isPreferred, failsOnLoss, detail)
    }

    /// The same request, which is granted immediately or not at all.
    var withoutQueueing: Acquire {
        Acquire(
            resource: resource, action: action, count: count, mode: mode, mayQueue: false, isPreferred: isPreferred,
            failsOnLoss: failsOnLoss, detail: detail)
    }

    /// The same request, which may queue and precedes all that are not preferred.
    var preferred: Acquire {
        Acquire(
            resource: resource, action: action, count: count, mode: mode, isPreferred: true, failsOnLoss: failsOnLoss,
            detail: detail)
    }

    /// The request in error messages: a verb and the resource, such as `pass latch "start"`.
    var purpose: String {
        var subject = resource
        if resource.kind == .bufferItems {
            subject.kind = .boundedBuffer
            subject.name.removeLast(Buffer.itemsSuffix.count)
        }
        return "\(resource.kind.traits.verb) \(subject)"
    }

    /// The error of a wait that has ended in the queue on the server, or of a request that may not queue.
    ///
    /// - Parameter timeout: what the caller allowed; 0 or `nil` for a single attempt.
    func notGranted(within timeout: Duration?) -> RedisDCError {
        let traits = resource.kind.traits
        if traits.refusal == .timedOut { return .timedOut(purpose, after: timeout) }
        let end = timeout.map { $0 > .zero ? "; timed out after \($0)" : "" } ?? ""
        return RedisDCError(traits.refusal, "cannot \(purpose): \(traits.unavailability)\(end)")
    }

    /// The letter of the claim's mode: see records.lua.
    private var letter: RedisArgument {
        switch (action, mode) {
        case (.arrive, _): resource.kind == .exchanger ? "e" : "a"
        case (.register, _): resource.kind == .phaser ? "r" : "p"
        case (.acquire, .consume): "c"
        case (.acquire, .lease): cohort != nil ? "k" : resource.kind == .mutex ? "m" : "l"
        case (.acquire, .group): "t"
        }
    }

    private var hasDetail: Bool { if case nil = detail { false } else { true } }

    /// The cohort of this process that the lease is for.
    var cohort: CohortClaim? { if case .cohort(let cohort)? = detail { cohort } else { nil } }

    /// The id of the put that a place of a buffer is for.
    var putID: String? { if case .puts(let id)? = detail { id } else { nil } }

    /// The family that serves the claim's release.
    var family: Family {
        switch (action, mode) {
        case (.arrive, _): .meetings
        case (.register, _): resource.kind.traits.family
        case (.acquire, .group): .groups
        case (.acquire, _): .permits
        }
    }

    // MARK: EngineOperation

    var name: String { resource.name }
    var describedResource: Resource? { resource }
    var once: Once { .slot }
    var remedy: Remedy {
        switch (action, mode, resource.kind) {
        case (.arrive, _, _): .report
        case (.acquire, .consume, .semaphore), (.acquire, .consume, .turnstile): .consumeAgain
        // An open latch stays open. A notification that comes a second time is allowed.
        default: .none
        }
    }

    func isEqual(to other: any EngineOperation) -> Bool {
        guard let other = other as? Acquire, mode == .consume, !hasDetail, !other.hasDetail else { return false }
        return action == other.action && mode == other.mode && count == other.count && mayQueue == other.mayQueue
            && isPreferred == other.isPreferred && failsOnLoss == other.failsOnLoss && resource == other.resource
    }

    var keys: ScriptKeys { putID != nil ? .putIDs(buffer: name) : resource.kind == .exchanger ? .all : .resources }

    var arguments: [RedisArgument] {
        let head = resource.arguments + [letter]
        guard action == .acquire else {
            if case .brings(let bytes)? = detail { return head + [.bytes(bytes)] }
            return head
        }
        let priority: RedisArgument = isPreferred ? "0" : "1"
        switch detail {
        case .group(let word), .puts(id: let word):
            return head + [.integer(count), mayQueue ? "0" : "1", priority, .string(word)]
        case .brings, .releases, .cohort, nil: break
        }
        // The last arguments have defaults.
        if isPreferred { return head + [.integer(count), mayQueue ? "0" : "1", priority] }
        if !mayQueue { return head + [.integer(count), "1"] }
        if isUsualLock { return [.string(resource.letters)] }
        return count == 1 ? head : head + [.integer(count)]
    }

    /// Whether all arguments after the kind have their defaults.
    private var isUsualLock: Bool {
        resource.kind == .mutex && resource.permits == 1 && mode == .lease && cohort == nil && count == 1
    }

    func script(_ family: Family?) -> RedisScript {
        switch (action, family ?? self.family) {
        case (.arrive, _): Scripts.arrive
        case (.register, .meetings): Scripts.register
        case (.register, _): Scripts.participate
        case (.acquire, .groups): Scripts.acquireInGroup
        case (.acquire, _) where putID != nil: Scripts.acquireForPut
        case (.acquire, _): resource.kind == .latch ? Scripts.waitForLatch : Scripts.acquire
        }
    }

    func reply(_ number: Int, more: Bool) -> EngineReply? {
        switch number {
        case 0: .queued(more: more)
        case -1: Optional.some(.none)
        case 1...: .granted(fence: UInt64(number))
        default: nil
        }
    }
}

extension Scripts {
    static let acquire = RedisScript(embedded: PackageResources.acquire_lua)
    static let acquireInGroup = RedisScript(embedded: PackageResources.acquire_in_group_lua)
    /// For the place of a put with an id.
    static let acquireForPut = RedisScript(embedded: PackageResources.acquire_for_put_lua)
    static let waitForLatch = RedisScript(embedded: PackageResources.wait_for_latch_lua)
    /// Registers a participant of a latch.
    static let participate = RedisScript(embedded: PackageResources.participate_lua)
    static let arrive = RedisScript(embedded: PackageResources.arrive_lua)
    /// Registers a party of a phaser.
    static let register = RedisScript(embedded: PackageResources.register_lua)
}
