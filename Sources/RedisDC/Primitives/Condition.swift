// Waiting, while holding a mutex, for something to become true.
import Hiredis
import CoordinationBase

/// A condition of a ``DistributedMutex``: wait for something that is looked at under the mutex.
///
/// ```swift
/// let mutex = try coordinator.mutex("stock")
/// let arrived = try mutex.condition("arrived")
///
/// try await mutex.withLock { lease in               // one waits
///     while await stock.isEmpty { try await arrived.wait(lease) }
///     await stock.take()
/// }
/// try await mutex.withLock { _ in                   // another one tells
///     await stock.add(item)
///     try await arrived.notify()
/// }
/// ```
///
/// **Guarantees**
/// - The mutex is released only after the place in the queue is taken, so that no `notify` that follows is missed.
/// - Whatever ends a wait (a notify, a timeout, a cancel), the mutex is held again when it returns or throws, under a new
///   ``Lease/fence``; if that cannot be, the lease is lost and its body cancelled.
/// - A `notify` is for those who wait then, first come, first served. What was meant for one who gave up, or died before it
///   knew, goes to the next. Nothing is kept for those who come later.
///
/// Look again after each wait: others may have been under the mutex in between, and a wait may end for no reason.
public struct Condition: Sendable {
    let resource: Resource
    let mutex: DistributedMutex

    /// The mutex's name, `#`, and its own.
    public var name: String { resource.name }

    /// Lets the mutex go, waits to be notified, and takes the mutex again.
    ///
    /// - Parameters:
    ///   - lease: of the mutex. Until this returns it is not held.
    ///   - timeout: how long to wait for a notify, from 1 ms; `nil` as long as it takes. Taking the mutex again is not
    ///     limited by it.
    /// - Throws: `.timedOut`, `.cancelled`, `.lost` (the session ended, and a notify may have been missed); then too the
    ///   mutex is held. `.invalidArgument` when the lease is of another mutex.
    public func wait(_ lease: Lease, timeout: Duration? = nil) async throws(RedisDCError) {
        let engine = mutex.engine
        guard ByteName(lease.name) == ByteName(mutex.name), lease.engine === engine else {
            throw RedisDCError(.invalidArgument, "the lease is of \"\(lease.name)\", not of \"\(mutex.name)\"")
        }
        try lease.check()
        let request = AcquireRequest(resource: resource, failsOnLoss: true, detail: .releases(lease.claim))
        lease.lendOut()
        let outcome: Result<Bool, RedisDCError>
        do { outcome = .success(try await engine.acquire(request, timeout: timeout) != nil) } catch {
            outcome = .failure(error)
        }
        try await takeAgain(lease)
        guard try outcome.get() else { throw RedisDCError(.timedOut, "\"\(name)\" was not notified in time") }
    }

    private func takeAgain(_ lease: Lease) async throws(RedisDCError) {
        let engine = mutex.engine
        if await engine.holds(lease.claim) {
            lease.adopt(nil)
            return
        }
        // Not in this task, which may be cancelled.
        let request = mutex.request
        let again = await Task { () -> Result<EngineStateMachine.Grant?, RedisDCError> in
            do { return .success(try await engine.acquire(request, timeout: nil)) } catch {
                return .failure(error as? RedisDCError ?? RedisDCError(.lost, "\(error)"))
            }
        }.value
        do { lease.adopt(try again.get()) } catch {
            lease.fail(error)
            throw error
        }
    }

    /// Wakes those who have waited longest.
    ///
    /// - Parameter count: at most so many, 1 to 1,000,000.
    /// - Throws: `.connectionLost` with `mayHaveRun` when the session was lost while it was under way.
    public func notify(_ count: Int = 1) async throws(RedisDCError) {
        guard (1...Semaphore.maxPermits).contains(count) else {
            throw RedisDCError(.invalidArgument, "count is \(count), expected 1 to \(Semaphore.maxPermits)")
        }
        _ = try await mutex.engine.call(.signal(resource, count: count))
    }

    /// Wakes all who wait now.
    public func notifyAll() async throws(RedisDCError) { try await notify(Semaphore.maxPermits) }
}

extension DistributedMutex {
    /// A condition of this mutex. It can have several, with different names.
    ///
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func condition(_ name: String) throws(RedisDCError) -> Condition {
        let full = "\(self.name)#\(name)"
        try ResourceName.validate(full)
        return Condition(resource: Resource(name: full, kind: .condition, permits: 0), mutex: self)
    }
}
