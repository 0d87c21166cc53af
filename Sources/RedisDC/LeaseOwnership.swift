// The leases that each task owns, so that a task that asks for a lock a second time is recognized.
import CoordinationBase
import Synchronization

/// The leases that one task owns because it runs the bodies of `withLock` and similar functions.
///
/// Task-local values are inherited by child tasks and by `Task {}`, ownership is not: a child that
/// ran beside its parent under the parent's lock would not be excluded by it. So the value names
/// the task that it belongs to, and every other task ignores it.
final class LeaseOwnership: Sendable {
    @TaskLocal private static var inherited: LeaseOwnership?

    private let task: TaskIdentity?
    private let lease: Lease
    /// The leases that the task owned before.
    private let outer: LeaseOwnership?
    /// When the body has returned its task may end, and a new task may get its identity and, by
    /// inheritance, this value.
    private let hasEnded = Atomic<Bool>(false)

    private init(_ lease: Lease, _ outer: LeaseOwnership?) {
        task = .current
        (self.lease, self.outer) = (lease, outer)
    }

    /// The leases that the current task owns; `nil` if it owns none.
    static var ofCurrentTask: LeaseOwnership? {
        guard let inherited, !inherited.hasEnded.load(ordering: .acquiring), inherited.task == .current else {
            return nil
        }
        return inherited
    }

    /// The lease on `name` that the current task owns, or `nil`.
    static func lease(on name: String, of engine: Engine) -> Lease? {
        var ownership = ofCurrentTask
        while let owned = ownership {
            if owned.lease.engine === engine, ByteName(owned.lease.name) == ByteName(name) { return owned.lease }
            ownership = owned.outer
        }
        return nil
    }

    /// Runs `body`, during which the current task owns a lease, and what another task owned that waits for this one.
    ///
    /// - Parameter lease: `nil` for none but those of the other task.
    static func with<Result>(
        _ lease: Lease?, _ outer: LeaseOwnership?, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        guard let owned = lease ?? outer?.lease else { return try await body() }
        let ownership = LeaseOwnership(owned, lease == nil ? outer?.outer : outer)
        defer { ownership.hasEnded.store(true, ordering: .releasing) }
        return try await $inherited.withValue(ownership) {
            // Isolates this closure. The standard library's parameter would otherwise take `body` off the caller's actor.
            _ = isolation
            return try await body()
        }
    }
}

/// The identity of a task. No two tasks that run at the same time have the same.
private struct TaskIdentity: Equatable {
    private let bits: UInt

    static var current: TaskIdentity? {
        withUnsafeCurrentTask { task in
            // `UnsafeCurrentTask` is one reference to the task; the bits are only compared, never turned back into one.
            task.map { TaskIdentity(bits: unsafeBitCast($0, to: UInt.self)) }
        }
    }
}
