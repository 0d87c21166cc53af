// A read-write lock for all nodes: many readers, or one writer.
import CoordinationBase
import Hiredis

/// A lock that many readers hold together, or one writer alone, among nodes.
///
/// ```swift
/// let lock = try coordinator.readWriteLock("catalogue")
/// let price = try await lock.withReadLock { _ in try await catalogue.price(of: item) }
/// try await lock.withWriteLock { lease in try await catalogue.update(item, fence: lease.fence) }
/// ```
///
/// It is a semaphore of 1,000,000 permits, of which a reader leases one and a writer all. Queueing,
/// cancelling, timing out and dying are as described for ``Semaphore``.
///
/// **Guarantees**
/// - A writer is alone. Readers are only with readers.
/// - With ``Policy/fifo`` nobody starves. With the other policies, those that are not preferred
///   wait while those that are keep coming.
/// - A writer that becomes a reader (``downgrade(_:)``) admits no other writer in between, and
///   keeps its fence.
/// - When the process dies, the first heartbeat of another live process after the session's TTL
///   releases its locks, normally within a second.
/// - The lock belongs to the task that runs the body, and not to child tasks or a `Task {}` made
///   there: they wait like any other task. Two children of a writer's body exclude each other.
///
/// **Limits**
/// - A reader cannot become a writer: two that tried would wait for each other. A body that tries
///   gets an error. End the reading first, and read again under the write lock.
/// - At most ``maxReaders`` readers at a time.
///
/// A ``DistributedMutex`` is enough where everyone writes; a ``LightSwitch`` forms groups other
/// than readers.
public struct ReadWriteLock: Sendable {
    /// The order in which waiting readers and writers are served.
    public enum Policy: Sendable {
        /// First come, first served. Readers that come one after the other hold the lock together.
        case fifo
        /// A reader never waits for a waiting writer.
        case preferReaders
        /// A writer overtakes all waiting readers.
        case preferWriters

        var letter: Unicode.Scalar {
            switch self {
            case .fifo: "f"
            case .preferReaders: "r"
            case .preferWriters: "w"
            }
        }
    }

    /// The maximum number of readers at a time.
    public static let maxReaders = 1_000_000

    let resource: Resource
    let engine: Engine
    /// The order in which waiting readers and writers are served.
    public let policy: Policy

    /// The name of the lock.
    public var name: String { resource.name }

    /// Runs `body` while holding the lock together with other readers.
    ///
    /// `body` runs in the caller's isolation, so an actor's method can use the actor's state in it.
    /// It is cancelled when the caller is cancelled or the lock is lost, and a shutdown of the
    /// coordinator waits for it. If the lock was lost or the coordinator has stopped, the call
    /// throws `.lost` or `.stopped` and discards the result or the error of `body`. The body of a
    /// call in a task that holds the lock already, for reading or for writing, gets the same lease.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for the lock; `nil` waits without limit, 0 tries once.
    ///   - body: receives the lease.
    /// - Throws: what `body` throws, and what ``readLock(timeout:)`` and ``Lease/release()`` throw.
    public func withReadLock<Result>(
        timeout: Duration? = nil, _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        if let outer = LeaseOwnership.lease(on: name, of: engine) {
            try outer.check()
            return try await body(outer)
        }
        return try await readLock(timeout: timeout).whileHeld(isOwnedByTask: true, body)
    }

    /// Runs `body` while holding the lock alone.
    ///
    /// It behaves as ``withReadLock(timeout:_:)`` does. A body of a task that holds the
    /// lock for writing already gets the same lease.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for the lock; `nil` waits without limit, 0 tries once.
    ///   - body: receives the lease.
    /// - Throws: what `body` throws, and what ``writeLock(timeout:)`` and ``Lease/release()``
    ///   throw. `.invalidArgument` when this task holds the lock for reading: it would wait for
    ///   itself.
    public func withWriteLock<Result>(
        timeout: Duration? = nil, _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        if let outer = LeaseOwnership.lease(on: name, of: engine) {
            guard outer.count == Self.maxReaders else {
                throw RedisDCError(
                    .invalidArgument,
                    "cannot lock read-write lock \"\(name)\" for writing: this task holds it for reading and would wait "
                        + "for itself; end the reading first")
            }
            try outer.check()
            return try await body(outer)
        }
        return try await writeLock(timeout: timeout).whileHeld(isOwnedByTask: true, body)
    }

    /// Acquires the lock together with other readers until ``Lease/release()``.
    ///
    /// - Parameter timeout: `nil` waits without limit, 0 tries once.
    /// - Throws: `.timedOut`, `.cancelled`, `.lost`, `.conflict` (the name belongs to another kind
    ///   of resource, or other nodes use another policy), `.destroyed`, `.invalidArgument`,
    ///   `.notConnected`, and what ``Coordinator`` lists for all operations.
    public func readLock(timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        try await engine.lease(reading, timeout: timeout)
    }

    /// Acquires the lock alone until ``Lease/release()``.
    ///
    /// - Parameter timeout: `nil` waits without limit, 0 tries once.
    /// - Throws: what ``readLock(timeout:)`` throws.
    public func writeLock(timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        try await engine.lease(writing, timeout: timeout)
    }

    /// Turns a writer into a reader without admitting another writer in between. Waiting readers
    /// enter. The fence stays.
    ///
    /// - Parameter lease: a writer's lease of this lock. A reader's lease stays as it is.
    /// - Throws: `.lost`, `.invalidArgument` (the lease is of another lock), `.cancelled` (nothing
    ///   was sent: the writer stays a writer), `.connectionLost` with `mayHaveRun`,
    ///   `.notConnected`, and what ``Coordinator`` lists for all operations.
    public func downgrade(_ lease: Lease) async throws(RedisDCError) {
        guard ByteName(lease.name) == ByteName(name), lease.engine === engine else {
            throw RedisDCError(
                .invalidArgument,
                "cannot downgrade a lease of \"\(lease.name)\": pass a lease of read-write lock \"\(name)\"")
        }
        try lease.check()
        guard try await engine.use(lease.ownClaim(), { Reduce(held: $0, keep: 1) }) > 0 else {
            throw RedisDCError(.lost, "read-write lock \"\(name)\" is no longer held")
        }
        lease.keep(1)
    }

    private var reading: Acquire {
        Acquire(resource: resource, mode: .lease, isPreferred: policy == .preferReaders)
    }

    private var writing: Acquire {
        Acquire(resource: resource, count: Self.maxReaders, mode: .lease, isPreferred: policy == .preferWriters)
    }
}

extension Coordinator {
    /// Returns a read-write lock that all nodes share. All nodes must use the same policy.
    ///
    /// - Parameters:
    ///   - name: 1 to 512 bytes of UTF-8 without control characters or braces.
    ///   - policy: the order in which waiting readers and writers are served.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func readWriteLock(
        _ name: String, policy: ReadWriteLock.Policy = .fifo
    ) throws(RedisDCError) -> ReadWriteLock {
        try ResourceName.validate(name)
        let resource = Resource(
            name: name, kind: .readWriteLock, permits: ReadWriteLock.maxReaders, policy: policy.letter)
        return ReadWriteLock(resource: resource, engine: engine(of: name), policy: policy)
    }
}

// MARK: Operations

/// Releases all but `keep` of a lease's permits.
struct Reduce: EngineOperation {
    /// The permits that the lease had; 0 when it is not held.
    typealias Value = Int

    let held: HeldClaim
    let keep: Int

    var name: String { held.name }
    var once: Once { .claim(held.number, isEnded: false) }
    var arguments: [RedisArgument] { [.string(String(held.number)), .integer(keep)] }

    func script(_ family: Family?) -> RedisScript { Scripts.reduce }
}

extension Scripts {
    static let reduce = RedisScript(embedded: PackageResources.reduce_lua)
}
