// The default semaphore: the number of permits stays right through crashes, cancellations, retries and lost replies.
import Hiredis

/// A counting semaphore shared by all nodes.
///
/// ```swift
/// let seats = try coordinator.semaphore("seats", permits: 4)
/// try await seats.withPermit { _ in try await play() }  // a crash returns the permit too
///
/// let arrived = try coordinator.semaphore("arrived", permits: 0)
/// try await arrived.signal()                        // on one machine
/// try await arrived.wait(timeout: .seconds(5))      // on another: the permit is consumed
/// ```
///
/// There are two ways to take a permit. ``withPermit(timeout:_:)`` and
/// ``acquireLease(_:timeout:)`` **lease** it: the semaphore gets the permit back when the body or
/// the lease ends, when the session is lost, or when the process dies. ``wait()`` **consumes** it:
/// the permit is gone until ``signal(_:)`` adds one.
///
/// **Guarantees**
/// - Permits are conserved: available + leased + unconfirmed = created + signalled − confirmed. A
///   consumed permit is confirmed when the process has told Redis that it received the permit.
///   ``resize(to:)`` changes the number created.
/// - First come, first served, regardless of the number of permits requested: waits for few permits
///   do not overtake an earlier wait for many. ``Fairness/barging`` gives that up for throughput.
/// - `wait(n)` takes all n permits or none, and `signal(n)` adds all n atomically.
/// - A wait that is cancelled or times out releases its claim (its place in the queue, or permits
///   that were just granted) and then throws. If Redis does not answer within 250 ms, the wait
///   throws while the claim may still exist, and the release continues in the background.
/// - A request that is sent again after a lost reply takes effect once.
/// - When the process dies, its session expires after the TTL, and a heartbeat of another process
///   then releases its leases. A consumed permit is returned in the same way if the process dies
///   before it has confirmed the receipt, which takes milliseconds.
///
/// **Limits**
/// - A consumed permit has no owner: if no process signals it back, it is gone.
/// - The semaphore's state is as durable as the Redis server's data. After a failover that loses the last writes, each
///   process repeats its signals of the last 30 s and consumes its permits again
///   (``CoordinatorEvent/repaired(operations:)``). What cannot be repaired is reported
///   (``CoordinatorEvent/dataLost``, `.lost`).
/// - Leases are not reentrant: a body that leases again takes another permit.
/// - Without a timeout, a wait for more permits than ever become available never ends. With
///   ``Fairness/fifo`` it also blocks all waits queued behind it.
///
/// ``Coordinator`` describes what timeouts, cancellation and outages of Redis mean for operations
/// that wait and for those that do not, and the errors that all of them throw.
///
/// ``ClassicSemaphore`` is the plain Redis idiom: other programs take part with `LPUSH` and
/// `BRPOP`, and it has none of the guarantees about crashes. A ``DistributedMutex`` is a semaphore
/// of one permit that knows its holder.
public struct Semaphore: Sendable {
    /// The maximum number of permits at creation, after a resize, and in one operation.
    public static let maxPermits = 1_000_000

    let resource: Resource
    let engine: Engine
    let coordinator: Coordinator

    /// The name of the semaphore.
    public var name: String { resource.name }

    // MARK: Lease

    /// Leases a permit while `body` runs, and returns it when `body` ends.
    ///
    /// `body` runs in the caller's isolation, so an actor's method can use the actor's state in it.
    /// It is cancelled when the caller is cancelled or the permit is lost, and a shutdown of the
    /// coordinator waits for it. If the lease was lost or the coordinator has stopped, the call
    /// throws `.lost` or `.stopped` and discards the result or the error of `body`.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for the permit; `nil` waits without limit, 0 tries once.
    ///   - body: receives the lease.
    /// - Throws: what `body` throws, and what ``acquireLease(_:timeout:)`` and ``Lease/release()``
    ///   throw.
    public func withPermit<Result>(
        timeout: Duration? = nil, _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        try await withPermits(1, timeout: timeout, body)
    }

    /// Leases `count` permits, all or none, while `body` runs, and returns them when `body` ends.
    ///
    /// It behaves as ``withPermit(timeout:_:)`` does.
    ///
    /// - Parameters:
    ///   - count: as for ``acquireLease(_:timeout:)``.
    ///   - timeout: how long to wait for the permits; `nil` waits without limit, 0 tries once.
    ///   - body: receives the lease of all permits.
    /// - Throws: what `body` throws, and what ``acquireLease(_:timeout:)`` and ``Lease/release()``
    ///   throw.
    public func withPermits<Result>(
        _ count: Int, timeout: Duration? = nil, _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        try await acquireLease(count, timeout: timeout).whileHeld(body)
    }

    /// Leases `count` permits, all or none, until ``Lease/release()``.
    ///
    /// When the process dies or the lease is dropped, the permits are returned as ``Lease``
    /// describes.
    ///
    /// - Parameters:
    ///   - count: 1 to the number of permits that this handle was made with; 1 to 1,000,000 if the
    ///     handle is from ``Coordinator/existingSemaphore(_:)``.
    ///   - timeout: `nil` waits without limit, 0 tries once.
    /// - Throws: `.timedOut`, `.cancelled`, `.destroyed`, `.conflict` (the semaphore has another
    ///   number of permits or another fairness than this handle, or the name belongs to another
    ///   kind of resource), `.notFound`, `.invalidArgument`, `.lost`, `.notConnected`, and what
    ///   ``Coordinator`` lists for all operations.
    public func acquireLease(_ count: Int = 1, timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        if let permits = resource.permits, count > permits {
            throw RedisDCError(
                .invalidArgument,
                "cannot lease \(count) permits of semaphore \"\(name)\": this handle was made with \(permits); "
                    + "request at most \(permits)")
        }
        try check(count)
        return try await engine.lease(
            Acquire(resource: resource, count: count, mode: .lease), timeout: timeout)
    }

    // MARK: Consume

    /// Consumes a permit, and waits without limit until there is one; only ``signal(_:)`` adds it
    /// back.
    ///
    /// - Throws: what ``wait(_:timeout:)`` throws, except `.timedOut`.
    public func wait() async throws(RedisDCError) { try await engine.obtain(try pending(1, nil)) }

    /// Consumes a permit, and waits for it until the timeout; only ``signal(_:)`` adds it back.
    ///
    /// - Parameter timeout: precise to about a millisecond; 0 tries once.
    /// - Throws: what ``wait(_:timeout:)`` throws.
    public func wait(timeout: Duration) async throws(RedisDCError) {
        try await engine.obtain(try pending(1, timeout))
    }

    /// Consumes `count` permits, all or none; only ``signal(_:)`` adds them back.
    ///
    /// - Parameters:
    ///   - count: 1 to 1,000,000. A wait for more than are ever available never ends.
    ///   - timeout: precise to about a millisecond; 0 tries once, `nil` waits without limit.
    /// - Throws: what ``acquireLease(_:timeout:)`` throws.
    public func wait(_ count: Int, timeout: Duration? = nil) async throws(RedisDCError) {
        try await engine.obtain(try pending(count, timeout))
    }

    /// Consumes `count` permits if they are available now; only ``signal(_:)`` adds them back.
    ///
    /// - Parameter count: 1 to 1,000,000.
    /// - Returns: whether the permits were taken: `false` when there are too few or, with
    ///   ``Fairness/fifo``, when others wait.
    /// - Throws: what ``wait(_:timeout:)`` throws, except `.timedOut`.
    public func tryWait(_ count: Int = 1) async throws(RedisDCError) -> Bool {
        let call = try pending(count, .zero)
        await engine.carryOutAcquire(call)
        return try call.isGranted()
    }

    /// Not inlined, so that its temporaries are not in the frames of waiting callers.
    @inline(never)
    private func pending(_ count: Int, _ timeout: Duration?) throws(RedisDCError) -> PendingCall {
        try check(count)
        return try engine.pending(Acquire(resource: resource, count: count), timeout: timeout)
    }

    // MARK: Signal

    /// Adds permits, for current and later waiters.
    ///
    /// - Parameter count: 1 to 1,000,000, added atomically.
    /// - Throws: `.connectionLost` with `mayHaveRun` when the session was lost while the request
    ///   was in flight, `.notConnected`, `.conflict`, `.destroyed`, `.notFound`, `.cancelled`,
    ///   `.invalidArgument`, and what ``Coordinator`` lists for all operations.
    public func signal(_ count: Int = 1) async throws(RedisDCError) { try await engine.call(signalling(count)) }

    func signalling(_ count: Int) throws(RedisDCError) -> Signal {
        try check(count)
        return Signal(resource, count: count)
    }

    /// The number of permits available now; negative after ``resize(to:)`` lowered the limit below
    /// the permits in use. Other processes change it at any time.
    ///
    /// While the semaphore does not exist, the value is the number of permits that this handle
    /// would create it with.
    ///
    /// - Throws: `.notFound` when the semaphore does not exist and the handle is from
    ///   ``Coordinator/existingSemaphore(_:)``, `.conflict` when the name belongs to another kind
    ///   of resource, and what ``Coordinator/inspect(_:limit:)`` throws.
    public var value: Int {
        get async throws(RedisDCError) {
            guard let inspection = try await coordinator.inspect(name, limit: 1) else {
                if let permits = resource.permits { return permits }
                throw RedisDCError(
                    .notFound,
                    "semaphore \"\(name)\" does not exist; create it with coordinator.semaphore(_:permits:)")
            }
            guard inspection.kind == .semaphore else {
                throw RedisDCError(
                    .conflict,
                    "cannot read the value of \"\(name)\": its kind is \(inspection.kind), expected semaphore")
            }
            return inspection.available
        }
    }

    // MARK: Create, resize, destroy

    /// Creates the semaphore now, instead of with the first operation.
    ///
    /// - Returns: whether this call created it.
    /// - Throws: `.conflict` when it exists with another number of permits or another fairness,
    ///   `.invalidArgument` when the handle is from ``Coordinator/existingSemaphore(_:)``, and what
    ///   ``signal(_:)`` throws, except `.notFound`.
    @discardableResult
    public func create() async throws(RedisDCError) -> Bool {
        guard resource.permits != nil else {
            throw RedisDCError(
                .invalidArgument,
                "cannot create semaphore \"\(name)\" without a number of permits; use semaphore(_:permits:)")
        }
        return try await engine.call(Create(resource))
    }

    /// Changes the total number of permits. Permits in use stay in use, so ``value`` may be
    /// negative until enough of them are returned.
    ///
    /// Handles that were made with the number of permits at creation or with the current number
    /// continue to work, and so do those from ``Coordinator/existingSemaphore(_:)``. All others
    /// throw `.conflict`. ``acquireLease(_:timeout:)`` leases at most the number of permits that
    /// its handle was made with.
    ///
    /// - Parameter permits: 0 to 1,000,000.
    /// - Throws: `.notFound`, and what ``signal(_:)`` throws.
    public func resize(to permits: Int) async throws(RedisDCError) {
        try checkArgument("permits", permits, in: 0...Self.maxPermits, cannot: "resize semaphore \"\(name)\"")
        try await engine.call(Resize(resource, permits: permits))
    }

    /// Deletes the semaphore. All waiters throw `.destroyed`; leases stay valid until they are
    /// released.
    ///
    /// - Returns: whether there was one.
    /// - Throws: `.conflict` when the name belongs to another kind of resource, `.connectionLost`
    ///   with `mayHaveRun`, `.notConnected`, `.cancelled`, and what ``Coordinator`` lists for all
    ///   operations.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool {
        try await engine.call(Destroy(resource))
    }

    private func check(_ count: Int) throws(RedisDCError) {
        guard (1...Self.maxPermits).contains(count) else {
            throw RedisDCError(
                .invalidArgument,
                "count is \(count) for semaphore \"\(name)\", expected 1 to \(Self.maxPermits)")
        }
    }
}

/// The order in which a semaphore serves concurrent waiters.
public enum Fairness: Sendable, Hashable {
    /// First come, first served. No wait overtakes another, however many permits the first one
    /// needs.
    case fifo
    /// A request that finds enough free permits gets them even if others wait. Throughput is
    /// higher, and a waiter that needs many permits at once may wait forever.
    case barging
}

extension Fairness {
    /// The letter of the policy: see records.lua.
    var letter: Unicode.Scalar {
        switch self {
        case .fifo: "f"
        case .barging: "b"
        }
    }
}
