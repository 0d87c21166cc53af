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
    private let leases: [Lease]
    /// When the body has returned its task may end, and a new task may get its identity and, by
    /// inheritance, this value.
    private let hasEnded = Atomic<Bool>(false)

    private init(_ leases: [Lease]) {
        task = .current
        self.leases = leases
    }

    /// The leases that the current task owns, innermost last.
    static var ofCurrentTask: [Lease] {
        guard let inherited, !inherited.hasEnded.load(ordering: .acquiring), inherited.task == .current else {
            return []
        }
        return inherited.leases
    }

    /// The lease on `name` that the current task owns, or `nil`.
    static func lease(on name: String, of engine: Engine) -> Lease? {
        let leases = ofCurrentTask
        if leases.isEmpty { return nil }
        return leases.last { ByteName($0.name) == ByteName(name) && $0.engine === engine }
    }

    /// Runs `body`, during which the current task owns `leases` and no others.
    static func with<Result>(
        _ leases: [Lease], isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        if leases.isEmpty { return try await body() }
        let ownership = LeaseOwnership(leases)
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
