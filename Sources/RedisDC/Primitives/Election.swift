// Leader election: a mutex whose holder leads, and a stream of leaders for observers.
import CoordinationBase
import Hiredis

/// An election of one leader at a time among candidates, with notice of each change for observers.
///
/// ```swift
/// let election = try coordinator.election("scheduler")
/// try await election.withLeadership { term in          // on every node that may lead
///     while term.isHeld { try await schedule(fence: term.fence) }
/// }
/// ```
///
/// On any node, to follow who leads:
///
/// ```swift
/// for await leader in election.changes() { show(leader) }
/// ```
///
/// The leader is the holder of the ``DistributedMutex`` of the same name.
///
/// **Guarantees**
/// - Candidates lead in the order in which they came.
/// - A leader that resigns is followed immediately, and one that dies within the session's TTL and
///   one heartbeat.
/// - No two leaders have the same term, and a later leader has a higher one: a resource that checks
///   the fence never accepts an older leader after a newer one.
///
/// **Limits**
/// - A leader that is paused may believe that it leads until it reads ``Lease/isHeld``, as with
///   every lease.
///
/// Use a ``DistributedMutex`` where no other node needs to know the holder.
public struct Election: Sendable {
    let mutex: DistributedMutex
    let redis: any Redis
    let clock: MonotonicClock
    let channel: SubscriptionTopic
    let pollInterval: Duration

    /// The name of the election.
    public var name: String { mutex.name }

    /// Waits until this task leads, runs `body`, and resigns.
    ///
    /// `body` runs in the caller's isolation. It is cancelled when the caller is cancelled or the
    /// leadership is lost.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for the leadership; `nil` waits without limit, 0 tries once.
    ///   - body: receives the leadership.
    /// - Throws: what `body` throws, and what ``DistributedMutex/withLock(timeout:_:)``
    ///   throws.
    public func withLeadership<Result>(
        timeout: Duration? = nil, _ body: (_ term: Lease) async throws -> Result
    ) async throws -> Result {
        defer { announce() }
        return try await mutex.withLock(timeout: timeout) { term in
            announce()
            return try await body(term)
        }
    }

    /// Waits until this process leads. It leads until ``resign(_:)``, or until the lease is lost or
    /// dropped.
    ///
    /// - Parameter timeout: `nil` waits without limit, 0 tries once.
    /// - Throws: what ``DistributedMutex/lock(timeout:)`` throws.
    public func campaign(timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        let term = try await mutex.lock(timeout: timeout)
        announce()
        return term
    }

    /// Ends the leadership. The next candidate leads.
    ///
    /// - Parameter term: the lease from ``campaign(timeout:)``.
    /// - Throws: what ``Lease/release()`` throws.
    public func resign(_ term: Lease) async throws(RedisDCError) {
        try await term.release()
        announce()
    }

    /// Returns the current leader, or `nil` when there is none.
    ///
    /// - Throws: what ``Coordinator/inspect(_:limit:)`` throws.
    public func leader() async throws(RedisDCError) -> Leader? {
        guard let holder = try await mutex.coordinator.inspect(name, limit: 1)?.holders.first else { return nil }
        return Leader(node: holder.node, session: holder.session, term: holder.fence)
    }

    /// Returns the current leader and every change: another leader, or none.
    ///
    /// A slow reader misses intermediate leaders, never the last one. A leader publishes that it
    /// leads or has resigned; the death of a leader is noticed by reading every `pollInterval`.
    /// While Redis cannot be reached, nothing is reported. The stream ends when its reader stops.
    public func changes() -> AsyncStream<Leader?> {
        let (stream, continuation) = AsyncStream.makeStream(of: Leader?.self, bufferingPolicy: .bufferingNewest(1))
        let watching = Task {
            let (wakeUps, wakeUp) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            wakeUp.yield()
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await listen(wakeUp) }
                group.addTask {
                    while !Task.isCancelled {
                        try? await clock.sleep(pollInterval)
                        wakeUp.yield()
                    }
                }
                var last: Leader??
                for await _ in wakeUps {
                    // The next wake-up or poll tries again.
                    guard case .success(let now) = await read() else { continue }
                    if last != .some(now) { continuation.yield(now) }
                    last = .some(now)
                }
                group.cancelAll()
            }
        }
        continuation.onTermination = { _ in watching.cancel() }
        return stream
    }

    private func read() async -> Result<Leader?, RedisDCError> {
        do { return .success(try await leader()) } catch { return .failure(error) }
    }

    private func listen(_ wakeUp: AsyncStream<Void>.Continuation) async {
        while !Task.isCancelled {
            try? await redis.withSubscription(to: [channel]) { events in
                wakeUp.yield()
                for try await _ in events { wakeUp.yield() }
            }
            try? await clock.sleep(pollInterval)
        }
    }

    /// Publishes that the leader has changed. No caller waits for it: a slow server must not delay a leader. An observer
    /// that misses it reads the leader with its next poll.
    private func announce() {
        Task { _ = try? await redis.publish("", to: channel) }
    }
}

extension Coordinator {
    /// Returns an election that all nodes share.
    ///
    /// - Parameter name: 1 to 512 bytes of UTF-8 without control characters or braces. A mutex of
    ///   the same name is the same resource.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func election(_ name: String) throws(RedisDCError) -> Election {
        let mutex = try mutex(name)
        let channel = EngineKeys(keyspace).leaderChannel(name)
        return Election(
            mutex: mutex, redis: redis, clock: clock, channel: .channel(channel),
            pollInterval: min(configuration.pollInterval, .maxWait))
    }
}

/// The holder of an ``Election``'s leadership.
public struct Leader: Sendable, Hashable {
    /// The host, process id and program name of the leader.
    public var node: String
    /// The session of the leader's process.
    public var session: String
    /// The fence of the leadership: a later leader has a higher one.
    public var term: UInt64
}
