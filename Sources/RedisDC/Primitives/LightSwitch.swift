// A light switch: a group whose members hold one mutex or one permit together.
import CoordinationBase
import Hiredis

/// A group whose members hold one mutex, or one permit of a semaphore, together.
///
/// ```swift
/// let room = try coordinator.mutex("room")
/// let readers = try room.lightSwitch("readers")
/// try await readers.withLock { _ in try await read() }  // any number of these together
/// try await room.withLock { _ in try await clean() }    // nobody else in the room
/// ```
///
/// The first member to enter acquires the permit for the group, and the last one to leave releases
/// it: the first into a room turns the light on, and the last one out turns it off. Two groups of
/// one mutex exclude each other, and each admits its own members freely.
///
/// **Guarantees**
/// - While the group holds the permit, a member enters immediately, even if others wait for the
///   permit. The group waits where the first of its waiters waits, and when that one enters, all
///   waiting members enter.
/// - A member that dies has left after its session's TTL. A member that gives up waiting holds
///   nothing.
/// - Each member has a ``Lease`` and a fence of its own.
///
/// **Limits**
/// - While members keep coming, all others starve. Where that matters, let everyone pass a
///   ``Turnstile`` or a mutex first, or use a ``ReadWriteLock``.
public struct LightSwitch: Sendable {
    let request: Acquire
    let engine: Engine
    /// The name of the group.
    public let group: String

    /// The name of the mutex or semaphore that the group holds.
    public var name: String { request.resource.name }

    /// Runs `body` as a member of the group.
    ///
    /// `body` runs in the caller's isolation. It is cancelled when the caller is cancelled or the
    /// lease is lost.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait to enter; `nil` waits without limit, 0 tries once.
    ///   - body: receives the member's lease.
    /// - Throws: what `body` throws, and what ``lock(timeout:)`` and ``Lease/release()`` throw.
    ///   `.invalidArgument` when this task holds the mutex alone: it would wait for itself.
    public func withLock<Result>(
        timeout: Duration? = nil, _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        if LeaseOwnership.lease(on: name, of: engine) != nil {
            throw RedisDCError(
                .invalidArgument,
                "cannot enter group \"\(group)\" of \"\(name)\": this task holds \"\(name)\" alone and would wait for "
                    + "itself; release it first")
        }
        return try await lock(timeout: timeout).whileHeld(body)
    }

    /// Enters the group until ``Lease/release()``.
    ///
    /// - Parameter timeout: `nil` waits without limit, 0 tries once.
    /// - Throws: what ``Semaphore/acquireLease(_:timeout:)`` throws.
    public func lock(timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        try await engine.lease(request, timeout: timeout)
    }

    init(_ group: String, of resource: Resource, _ engine: Engine) throws(RedisDCError) {
        try ResourceName.validate(group)
        request = Acquire(resource: resource, mode: .group, detail: .group(group))
        (self.group, self.engine) = (group, engine)
    }
}

extension DistributedMutex {
    /// Returns a group that holds this mutex together.
    ///
    /// - Parameter group: the name of the group, 1 to 512 bytes of UTF-8 without control characters
    ///   or braces. Other groups of the mutex have other names.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func lightSwitch(_ group: String) throws(RedisDCError) -> LightSwitch {
        try LightSwitch(group, of: resource, engine)
    }
}

extension Semaphore {
    /// Returns a group that holds one permit of this semaphore together.
    ///
    /// - Parameter group: the name of the group, 1 to 512 bytes of UTF-8 without control characters
    ///   or braces.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func lightSwitch(_ group: String) throws(RedisDCError) -> LightSwitch {
        try LightSwitch(group, of: resource, engine)
    }
}
