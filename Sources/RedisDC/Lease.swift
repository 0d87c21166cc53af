// What a holder has in hand: the fence, the deadline, and the news when it is lost.
import Hiredis
import Synchronization
import CoordinationBase

/// Something that is held until it is released, or until the session that holds it ends.
///
/// ```swift
/// try await mutex.withLock { lease in
///     try await storage.write(data, fence: lease.fence)
/// }
/// ```
///
/// - Redis keeps it for this process as long as the coordinator's heartbeats arrive. When they do not, `isHeld` becomes
///   false, `check()` throws and the body of a `withLock` or `withPermit` is cancelled, all before Redis may give it to
///   anyone else.
/// - A process that was stopped in the middle of a statement (SIGSTOP, a machine put to sleep) finds `isHeld` false as
///   soon as it goes on, but what it was about to send may still be sent. That is what the fence is for.
/// - When the process dies, it is free after the session's TTL at the latest.
public final class Lease: Sendable {
    private struct Hold {
        var claim: UInt64
        var fence: UInt64
        var count: Int
        var life: SessionLife
    }

    /// What is held.
    public let name: String
    let engine: Engine
    private let watch: LeaseWatch
    private let isReleased = Atomic<Bool>(false)
    private let hold: Locked<Hold>
    /// While it waits for a condition, it is not held.
    private let isLentOut = Atomic<Bool>(false)

    /// What the current task holds, innermost last.
    @TaskLocal static var all: [Lease] = []

    static func heldByTask(_ name: String, _ engine: Engine) -> Lease? {
        all.last { ByteName($0.name) == ByteName(name) && $0.engine === engine }
    }

    init(_ grant: EngineStateMachine.Grant, name: String, count: Int, engine: Engine) {
        hold = Locked(Hold(claim: grant.claim, fence: grant.fence, count: count, life: grant.life))
        watch = grant.watch ?? LeaseWatch()
        self.name = name
        self.engine = engine
    }

    deinit {
        guard !isReleased.load(ordering: .acquiring) else { return }
        engine.releaseSoon(claim)
    }

    /// A number that grows with every grant of the namespace's partition and never repeats. Who guards a resource keeps
    /// the highest that it has seen and refuses whatever comes with a lower one. Waiting for a ``Condition`` changes it.
    public var fence: UInt64 { hold.withLock { $0.fence } }

    /// How many permits.
    public var count: Int { hold.withLock { $0.count } }

    var claim: UInt64 { hold.withLock { $0.claim } }

    /// How long it is certainly held if no further heartbeat succeeds; zero when it is lost. Asking costs nothing.
    public var remaining: Duration {
        isReleased.load(ordering: .acquiring) || isLentOut.load(ordering: .acquiring) || watch.isLost
            ? .zero : hold.withLock { $0.life }.remaining
    }

    /// Until when it is certainly held. Each heartbeat moves it on.
    public var deadline: ContinuousClock.Instant { .now + remaining }

    public var isHeld: Bool { remaining > .zero }

    /// - Throws: `.lost` when it is not held any more.
    public func check() throws(RedisDCError) {
        guard isHeld else { throw watch.error ?? RedisDCError(.lost, "\"\(name)\" is not held any more") }
    }

    /// Gives it back. Releasing a second time does nothing. A cancelled task releases all the same.
    ///
    /// - Throws: `.lost` when it was not held any more: someone else may have held it meanwhile. `.stopped`.
    public func release() async throws(RedisDCError) {
        guard !isReleased.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let error = watch.error
        watch.finish()
        if let error { throw error }
        try await engine.release(claim)
    }

    /// Turns it into a permit of another resource, in one step. If that fails, it is given back.
    func pass(to resource: Resource, item: [UInt8]? = nil) async throws(RedisDCError) {
        try check()
        guard !isReleased.exchange(true, ordering: .acquiringAndReleasing) else { return }
        do {
            try await engine.pass(claim, to: resource, item: item)
            watch.finish()
        } catch {
            engine.releaseSoon(claim)
            throw watch.error ?? error
        }
    }

    /// Calls `body` when it is lost, at once if it is already; not when it is released. It must not block.
    public func onLoss(_ body: @escaping @Sendable (RedisDCError) -> Void) { watch.onLoss(body) }

    // MARK: For the primitives

    /// From here to ``adopt(_:)`` or ``fail(_:)`` it is not held.
    func lendOut() { isLentOut.store(true, ordering: .releasing) }

    /// It is held again, under another claim.
    func adopt(_ grant: EngineStateMachine.Grant?) {
        if let grant {
            hold.withLock { ($0.claim, $0.fence, $0.life) = (grant.claim, grant.fence, grant.life) }
            grant.watch?.onLoss { [watch] in watch.lose($0) }
        }
        isLentOut.store(false, ordering: .releasing)
        // Given back while it was not held: nobody else will.
        if isReleased.load(ordering: .acquiring), let grant { engine.releaseSoon(grant.claim) }
    }

    /// It could not be had again.
    func fail(_ error: RedisDCError) { watch.lose(error) }

    func keep(_ count: Int) { hold.withLock { $0.count = count } }
}

/// Hears that a lease is lost.
final class LeaseWatch: Sendable {
    private enum State {
        case held([@Sendable (RedisDCError) -> Void])
        case lost(RedisDCError)
        case over
    }
    private let state = Locked(State.held([]))

    var error: RedisDCError? {
        state.withLock { state in if case .lost(let error) = state { error } else { nil } }
    }
    var isLost: Bool { error != nil }

    func lose(_ error: RedisDCError) {
        let listeners = state.withLock { state -> [@Sendable (RedisDCError) -> Void] in
            guard case .held(let listeners) = state else { return [] }
            state = .lost(error)
            return listeners
        }
        for listener in listeners { listener(error) }
    }

    /// Nobody needs to hear of it any more.
    func finish() {
        state.withLock { state in if case .held = state { state = .over } }
    }

    func onLoss(_ body: @escaping @Sendable (RedisDCError) -> Void) {
        let error = state.withLock { state -> RedisDCError? in
            switch state {
            case .held(let listeners):
                state = .held(listeners + [body])
                return nil
            case .lost(let error): return error
            case .over: return nil
            }
        }
        if let error { body(error) }
    }
}
