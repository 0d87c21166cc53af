// A group that holds one permit together.
import Hiredis
import CoordinationBase

/// The first of a group to come in takes a mutex, or a permit of a semaphore, for all of them; the last one to go out gives
/// it back.
///
/// ```swift
/// let room = try coordinator.mutex("room")
/// let readers = try room.lightSwitch("readers")
/// try await readers.withLock { _ in try await read() }  // any number of these together
/// try await room.withLock { _ in try await clean() }    // nobody else in the room
/// ```
///
/// Two groups of one mutex exclude each other, and each lets its own in freely.
///
/// **Guarantees**
/// - Whoever comes while the group is in comes in at once, even if others wait for the room: as long as its members keep
///   coming, they starve. Let all pass a ``Turnstile`` or a mutex first where that matters, or use a ``ReadWriteLock``.
/// - The group waits where the first of its waiters waits. When that one comes in, all of the group come in with it.
/// - Who dies counts as out after the session's TTL; who gives up waiting holds nothing.
/// - Each member has a ``Lease`` and a fence of its own.
public struct LightSwitch: Sendable {
    let request: AcquireRequest
    let engine: Engine
    public let group: String

    /// What the group holds.
    public var name: String { request.resource.name }

    /// Runs `body` as one of the group.
    ///
    /// - Parameter timeout: how long to wait for it; `nil` as long as it takes, 0 tries once.
    /// - Throws: what `body` throws; `.timedOut`, `.cancelled`, `.lost`, `.stopped`, `.destroyed`, `.conflict`. `.invalidArgument`
    ///   when the task holds the mutex alone: it would wait for itself.
    public func withLock<Result: Sendable>(
        timeout: Duration? = nil, _ body: @escaping @Sendable (Lease) async throws -> Result
    ) async throws -> Result {
        if Lease.heldByTask(name, engine) != nil {
            throw RedisDCError(
                .invalidArgument, "this task holds \"\(name)\" already; its group \"\(group)\" would wait for it")
        }
        return try await engine.holding(try await lock(timeout: timeout), body)
    }

    /// Comes in until ``Lease/release()``.
    public func lock(timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        try await engine.lease(request, timeout: timeout)
    }

    init(_ group: String, of resource: Resource, _ engine: Engine) throws(RedisDCError) {
        try ResourceName.validate(group)
        request = AcquireRequest(resource: resource, mode: .group, detail: .group(group))
        (self.group, self.engine) = (group, engine)
    }
}

extension DistributedMutex {
    /// A group that holds this mutex together.
    ///
    /// - Parameter group: its name, by the rules for names. Other groups of the mutex have other names.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func lightSwitch(_ group: String) throws(RedisDCError) -> LightSwitch {
        try LightSwitch(group, of: resource, engine)
    }
}

extension Semaphore {
    /// A group that holds one permit of this semaphore together.
    ///
    /// - Parameter group: its name, by the rules for names.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func lightSwitch(_ group: String) throws(RedisDCError) -> LightSwitch {
        try LightSwitch(group, of: resource, engine)
    }
}
