// A lease: its fencing token, its deadline, its release, and the notice of its loss.
import CoordinationBase
public import Hiredis
import Synchronization

/// The ownership of a lock or of permits, until it is released or lost.
///
/// ```swift
/// try await mutex.withLock { lease in
///     try await storage.write(data, fence: lease.fence)
/// }
/// ```
///
/// - Redis keeps the lease for this process while the coordinator's heartbeats arrive. When they
///   stop arriving, ``isHeld`` becomes false, ``check()`` throws, and the body of a `withLock` or
///   `withPermit` is cancelled, all before Redis may grant the lock or the permits to another
///   holder.
/// - After a forced release by an operator, a loss of data or a failover of Redis, the same happens
///   only when the process learns of it: normally at once, otherwise with the next heartbeat,
///   within a third of the TTL. Another holder may have the lock or the permits in the meantime.
/// - A process that was paused in the middle of a statement (SIGSTOP, a suspended machine) finds
///   ``isHeld`` false as soon as it continues, but a request that it was about to send may still be
///   sent. The ``fence`` protects against that.
/// - When the process dies, its session expires after the TTL, and a heartbeat of another process
///   then releases its leases.
/// - When the last reference to a lease is dropped without ``release()``, the lease is released in
///   the background. Prefer `withLock`, `withPermit` and similar functions, which release at a
///   known point. When the lease was lost or the coordinator has stopped, these functions throw
///   `.lost` or `.stopped` and discard the result or the error of the body.
public final class Lease: Sendable {
    private struct Hold {
        /// The object of the release: a claim, or a turn within a cohort.
        enum Subject {
            case claim(UInt64)
            case turn(UInt64, Cohort)
        }
        var subject: Subject
        var fence: UInt64
        var count: Int
        var life: SessionLife
    }

    /// The name of the resource that is held.
    public let name: String
    let engine: Engine
    private let watch: LeaseWatch
    private let isReleased = Atomic<Bool>(false)
    private let hold: Locked<Hold>
    /// True while the lease's task waits for a ``Condition``: the lease is not held then.
    private let isSuspended = Atomic<Bool>(false)

    init(_ grant: EngineStateMachine.Grant, name: String, count: Int, engine: Engine) {
        hold = Locked(Hold(subject: .claim(grant.claim), fence: grant.fence, count: count, life: grant.life))
        watch = grant.watch ?? LeaseWatch()
        self.name = name
        self.engine = engine
    }

    init(_ turn: CohortStateMachine.Turn, of cohort: Cohort, life: SessionLife, watch: LeaseWatch) {
        hold = Locked(Hold(subject: .turn(turn.number, cohort), fence: turn.fence, count: 1, life: life))
        self.watch = watch
        name = cohort.resource.name
        engine = cohort.engine
    }

    deinit {
        guard !isReleased.load(ordering: .acquiring) else { return }
        switch subject {
        case .claim(let claim): engine.releaseSoon(claim)
        case .turn(let number, let cohort): cohort.releaseSoon(number)
        }
    }

    /// The fencing token of the grant: a number that grows with every grant in the namespace's
    /// partition and never repeats. With ``Locality/cohort(limit:linger:)`` it grows with every
    /// grant of the same mutex, and grants of other names may have equal ones.
    ///
    /// The protected resource stores the highest fence that it has seen and refuses requests with a
    /// lower one. When a ``Condition`` acquires the mutex again, the lease gets a new fence.
    public var fence: UInt64 { hold.withLock { $0.fence } }

    /// The number of permits that are held.
    public var count: Int { hold.withLock { $0.count } }

    private var subject: Hold.Subject { hold.withLock { $0.subject } }

    /// The claim in Redis. That of a cohort leaves the cohort, and becomes this lease's own.
    ///
    /// - Throws: when the lease was lost.
    func ownClaim() throws(RedisDCError) -> UInt64 {
        switch subject {
        case .claim(let claim): return claim
        case .turn(let number, let cohort):
            guard let claim = cohort.detach(number, watch) else {
                throw watch.error ?? RedisDCError(.lost, "\"\(name)\" is no longer held")
            }
            hold.withLock { $0.subject = .claim(claim) }
            return claim
        }
    }

    /// The time for which Redis keeps the lease if no further heartbeat succeeds, by the process's
    /// own clock and minus a safety margin. Zero when the lease is lost or released, and while its
    /// task waits for a ``Condition``.
    ///
    /// Reading it sends nothing, so an operator's release or a loss of data is not visible here
    /// until the process learns of it.
    public var remaining: Duration {
        isReleased.load(ordering: .acquiring) || isSuspended.load(ordering: .acquiring) || watch.isLost
            ? .zero : hold.withLock { $0.life }.remaining
    }

    /// The current time plus ``remaining``: now when the lease is not held. Each heartbeat moves it
    /// forward.
    public var deadline: ContinuousClock.Instant { .now + remaining }

    /// Whether ``remaining`` is more than zero. False while the lease's task waits for a
    /// ``Condition``.
    public var isHeld: Bool { remaining > .zero }

    /// Throws unless the lease is held.
    ///
    /// - Throws: `.lost`; `.stopped` when the coordinator has stopped; the error with which
    ///   ``Condition/wait(_:timeout:)`` could not acquire the mutex again.
    public func check() throws(RedisDCError) {
        guard isHeld else { throw watch.error ?? RedisDCError(.lost, "\"\(name)\" is no longer held") }
    }

    /// Waits until the grant is as durable as requested, so that a failover to a server that has
    /// confirmed it, or a restart, does not lose the lease.
    ///
    /// The lease is held before, meanwhile, and afterwards, also when this throws. What Redis lacks
    /// after a failover is not waited for: the lease is lost then.
    ///
    /// - Parameter timeout: how long to wait for the confirmation; `nil` is
    ///   ``CoordinatorConfiguration/durabilityTimeout``.
    /// - Throws: `.notDurable` when the confirmation has not arrived in time: the lease is still held;
    ///   `.unsupported` when the server cannot confirm this durability; `.invalidArgument`; `.lost`;
    ///   `.stopped`; `.cancelled`; and other failures of a request.
    public func makeDurable(_ durability: Durability, timeout: Duration? = nil) async throws(RedisDCError) {
        try check()
        if durability == .memory { return }
        let timeout = timeout ?? engine.durableChanges.timeout
        if timeout < .zero {
            throw RedisDCError(.invalidArgument, "timeout is \(timeout), expected 0 or more")
        }
        try await engine.durableChanges.check(durability)
        let claim: UInt64? =
            switch subject {
            case .claim(let claim): claim
            case .turn(let number, let cohort): cohort.claim(of: number)
            }
        do throws(RedisDCError) {
            guard let change = await engine.grant(of: claim) else {
                throw RedisDCError(.lost, "\"\(name)\" is no longer held")
            }
            try await engine.durableChanges.confirm(change, durability, within: min(timeout, .maxWait))
        } catch {
            try check()
            if error.code != .notDurable { throw error }
            throw error.prefixed("\"\(name)\" was granted, but is not .\(durability)")
        }
        try check()
    }

    /// Waits until the grant is as durable as requested, and releases the lease if that fails.
    ///
    /// - Throws: what ``makeDurable(_:timeout:)`` throws.
    func durableOrReleased(_ durability: Durability) async throws(RedisDCError) -> Lease {
        do throws(RedisDCError) {
            try await makeDurable(durability)
            return self
        } catch {
            try? await release()
            var error = error
            if error.code == .notDurable { error.message += "; the lease was released" }
            throw error
        }
    }

    /// Releases the lease. A second call does nothing.
    ///
    /// The release is sent even if the task is cancelled. While Redis does not answer it is
    /// repeated until the session ends, so a call may take up to the TTL.
    ///
    /// - Throws: `.lost` when the lease was lost before Redis confirmed the release: another holder
    ///   may have had the lock or the permits in the meantime. `.stopped`. `.notPermitted`,
    ///   `.wrongType`, `.outOfMemory` or `.serverError` when Redis refuses the release: then the
    ///   end of the session frees what was held.
    public func release() async throws(RedisDCError) {
        guard !isReleased.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let error = watch.error
        watch.finish()
        if let error { throw error }
        switch subject {
        case .claim(let claim): try await engine.release(claim)
        case .turn(let number, let cohort): try await cohort.release(number)
        }
    }

    /// Releases the lease after a pause. A loss or the end of the session ends the pause.
    func releaseLater(after pause: Duration) {
        Task { [self] in
            try? await engine.clock.sleep(pause)
            try? await release()
        }
    }

    /// Ends the lease and gives its permit to another resource, atomically. If that fails, or the
    /// item with this id was put before, the lease is released.
    func pass(to resource: Resource, item: [UInt8]? = nil, id: String? = nil) async throws(RedisDCError) {
        try check()
        let claim = try ownClaim()
        guard !isReleased.exchange(true, ordering: .acquiringAndReleasing) else { return }
        do {
            let isPassed = try await engine.pass(claim, to: resource, item: item, id: id)
            watch.finish()
            if !isPassed { engine.releaseSoon(claim) }
        } catch {
            engine.releaseSoon(claim)
            throw watch.error ?? error
        }
    }

    /// Calls `body` when the lease is lost, immediately if it is lost already, and never after a
    /// release.
    ///
    /// - Parameter body: receives `.lost`, `.stopped`, or the error with which a ``Condition``
    ///   could not acquire the mutex again. It runs on the client's executor or, when the lease is
    ///   lost already, on the calling thread. It must not block.
    public func onLoss(_ body: @escaping @Sendable (RedisDCError) -> Void) { watch.onLoss(body) }

    // MARK: For conditions and downgrades

    /// Marks the lease as not held, until ``replaceGrant(_:)`` or ``fail(_:)``.
    func suspend() { isSuspended.store(true, ordering: .releasing) }

    /// Marks the lease as held again: under the claim of `grant`, or under its previous claim if
    /// `grant` is `nil`. A lease that was lost meanwhile remains lost, and the grant is released.
    func replaceGrant(_ grant: EngineStateMachine.Grant?) {
        if let grant {
            hold.withLock { ($0.subject, $0.fence, $0.life) = (.claim(grant.claim), grant.fence, grant.life) }
            grant.watch?.onLoss { [watch] in watch.lose($0) }
        }
        isSuspended.store(false, ordering: .releasing)
        // Released or lost while it was suspended: then a release does not release the new claim.
        if isReleased.load(ordering: .acquiring) || watch.isLost, let grant { engine.releaseSoon(grant.claim) }
    }

    /// The reason why the lease is lost; `nil` if it is not.
    var loss: RedisDCError? { watch.error }

    /// Marks the lease as lost because it could not be acquired again.
    func fail(_ error: RedisDCError) { watch.lose(error) }

    /// Records that only `count` permits are held from now on.
    func keep(_ count: Int) { hold.withLock { $0.count = count } }
}
