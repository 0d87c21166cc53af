// Many readers, or one writer.
import Hiredis
import CoordinationBase

/// A lock that many readers hold together, or one writer alone, among nodes.
///
/// ```swift
/// let lock = try coordinator.readWriteLock("catalogue")
/// let price = try await lock.withReadLock { _ in try await catalogue.price(of: item) }
/// try await lock.withWriteLock { lease in try await catalogue.update(item, fence: lease.fence) }
/// ```
///
/// It is a semaphore of 1,000,000 permits of which a reader leases one and a writer all; what is said there of queueing,
/// cancelling, timing out and dying holds here.
///
/// **Guarantees**
/// - A writer is alone. Readers are only with readers.
/// - Nobody starves with ``Policy/fifo``. With the others those who are not preferred wait as long as those who are keep
///   coming.
/// - A writer that becomes a reader (``downgrade(_:)``) lets no other writer in between, and keeps its fence.
/// - When the process dies, what it holds is free after the session's TTL.
///
/// A reader cannot become a writer: two that tried would wait for each other. It is refused with an error; release first,
/// and look again at what was read.
public struct ReadWriteLock: Sendable {
    /// Who goes first when both wait.
    public enum Policy: Sendable {
        /// First come, first served: readers that come together go together.
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

    /// Most readers at a time.
    public static let maxReaders = 1_000_000

    let resource: Resource
    let engine: Engine
    public let policy: Policy

    public var name: String { resource.name }

    /// Runs `body` while holding it together with other readers.
    ///
    /// A task that holds it already, for reading or for writing, goes on with what it has.
    ///
    /// - Parameter timeout: how long to wait for it; `nil` as long as it takes, 0 tries once.
    /// - Throws: what `body` throws; `.timedOut`, `.cancelled`, `.lost`, `.stopped`, `.conflict` (the name is something else's,
    ///   or other nodes use another policy).
    public func withReadLock<Result: Sendable>(
        timeout: Duration? = nil, _ body: @escaping @Sendable (Lease) async throws -> Result
    ) async throws -> Result {
        if let outer = Lease.heldByTask(name, engine) {
            try outer.check()
            return try await body(outer)
        }
        return try await engine.holding(try await readLock(timeout: timeout), knownToTask: true, body)
    }

    /// Runs `body` while holding it alone.
    ///
    /// - Throws: as ``withReadLock(timeout:_:)``; `.invalidArgument` when the task holds it for reading: it would wait for
    ///   itself.
    public func withWriteLock<Result: Sendable>(
        timeout: Duration? = nil, _ body: @escaping @Sendable (Lease) async throws -> Result
    ) async throws -> Result {
        if let outer = Lease.heldByTask(name, engine) {
            guard outer.count == Self.maxReaders else {
                throw RedisDCError(
                    .invalidArgument,
                    "this task reads under \"\(name)\" and would wait for itself as a writer; end the reading first")
            }
            try outer.check()
            return try await body(outer)
        }
        return try await engine.holding(try await writeLock(timeout: timeout), knownToTask: true, body)
    }

    /// Holds it together with other readers until ``Lease/release()``.
    public func readLock(timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        try await engine.lease(reading, timeout: timeout)
    }

    /// Holds it alone until ``Lease/release()``.
    public func writeLock(timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        try await engine.lease(writing, timeout: timeout)
    }

    /// Makes a reader of a writer, without letting another writer in between. Readers that wait come in. The fence stays.
    ///
    /// - Throws: `.lost`, `.invalidArgument` (another lock's lease); a cancelled task throws `.cancelled`, and then it may
    ///   have become a reader or not.
    public func downgrade(_ lease: Lease) async throws(RedisDCError) {
        guard ByteName(lease.name) == ByteName(name), lease.engine === engine else {
            throw RedisDCError(.invalidArgument, "the lease is of \"\(lease.name)\", not of \"\(name)\"")
        }
        try lease.check()
        guard try await engine.reduce(lease.claim, keep: 1) > 0 else {
            throw RedisDCError(.lost, "\"\(name)\" is not held any more")
        }
        lease.keep(1)
    }

    private var reading: AcquireRequest {
        AcquireRequest(resource: resource, mode: .lease, isPreferred: policy == .preferReaders)
    }

    private var writing: AcquireRequest {
        AcquireRequest(resource: resource, count: Self.maxReaders, mode: .lease, isPreferred: policy == .preferWriters)
    }
}

extension Coordinator {
    /// A read-write lock that all nodes share. All must use the same policy.
    ///
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
