// A gate that lets waiters pass one by one, or all.
import Hiredis

/// A gate among nodes: locked, open, or open for so many.
///
/// ```swift
/// let gate = try coordinator.turnstile("start")
/// try await gate.pass(timeout: .seconds(30))   // on every node
/// try await gate.unlock()                      // on one: all pass, those too who come later
/// ```
///
/// It is a semaphore whose permits are passes: what is said there of queueing, cancelling, retrying and dying holds here.
public struct Turnstile: Sendable {
    let resource: Resource
    let engine: Engine

    public var name: String { resource.name }

    /// Passes, waiting as long as it takes, or at most so long.
    ///
    /// - Parameter timeout: from 1 ms; 0 tries once, `nil` waits as long as it takes.
    /// - Throws: `.timedOut`, `.cancelled`, `.destroyed`, `.conflict`, `.stopped`. Then it has not passed, and used no pass.
    public func pass(timeout: Duration? = nil) async throws(RedisDCError) {
        guard try await engine.acquire(AcquireRequest(resource: resource), timeout: timeout) != nil else {
            throw RedisDCError(.timedOut, "the turnstile \"\(name)\" was locked")
        }
    }

    /// Lets so many pass, in their order: those who wait, then those who come.
    ///
    /// - Parameter count: 1 to 1,000,000.
    public func admit(_ count: Int = 1) async throws(RedisDCError) {
        guard (1...Semaphore.maxPermits).contains(count) else {
            throw RedisDCError(.invalidArgument, "count is \(count), expected 1 to \(Semaphore.maxPermits)")
        }
        _ = try await engine.call(.signal(resource, count: count))
    }

    /// Lets everyone pass until it is locked.
    public func unlock() async throws(RedisDCError) { _ = try await engine.call(.setTurnstile(resource, isOpen: true)) }

    /// Lets nobody pass any more. Passes that were admitted and not used are gone.
    public func lock() async throws(RedisDCError) { _ = try await engine.call(.setTurnstile(resource, isOpen: false)) }

    /// Deletes it, and wakes everyone who waits with `.destroyed`.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool { try await engine.call(.destroy(resource)) == 1 }
}

extension Coordinator {
    /// A turnstile that all nodes share.
    ///
    /// - Parameter preloaded: how many may pass when it is made, 0 to 1,000,000.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func turnstile(_ name: String, preloaded: Int = 0) throws(RedisDCError) -> Turnstile {
        try ResourceName.validate(name)
        guard (0...Semaphore.maxPermits).contains(preloaded) else {
            throw RedisDCError(
                .invalidArgument, "preloaded is \(preloaded), expected 0 to \(Semaphore.maxPermits)")
        }
        return Turnstile(resource: Resource(name: name, kind: .turnstile, permits: preloaded), engine: engine(of: name))
    }
}
