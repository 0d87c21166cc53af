// One leader among nodes.
import Hiredis
import CoordinationBase

/// Who leads.
public struct Leader: Sendable, Hashable {
    /// Host, process id and name of the program.
    public var node: String
    /// The session of its process.
    public var session: String
    /// The fence of its leadership: a later leader has a higher one.
    public var term: UInt64
}

/// Elects one leader at a time among those who campaign, and tells observers who it is.
///
/// ```swift
/// let election = try coordinator.election("scheduler")
/// try await election.withLeadership { term in          // on every node that may lead
///     while term.isHeld { try await schedule(fence: term.fence) }
/// }
/// for await leader in election.changes() { show(leader) }  // on any node
/// ```
///
/// It is a ``DistributedMutex`` of the same name, whose holder leads. So candidates follow one another in the order in which
/// they came, a leader that dies is followed within the session's TTL and one heartbeat, and one that resigns at once.
///
/// There are never two leaders with the same term, and never an older one after a newer one for whoever looks at the fence. A
/// leader that is paused may believe that it leads until it looks at ``Lease/isHeld``: see there.
public struct Election: Sendable {
    let mutex: DistributedMutex
    let redis: any Redis
    let channel: SubscriptionTopic
    let pollInterval: Duration

    public var name: String { mutex.name }

    /// Waits until this task leads, and runs `body`. At its end it resigns. When the leadership is lost, `body` is cancelled.
    ///
    /// - Parameter timeout: how long to wait; `nil` as long as it takes, 0 tries once.
    /// - Throws: what `body` throws, and what ``DistributedMutex/withLock(timeout:_:)`` throws.
    public func withLeadership<Result: Sendable>(
        timeout: Duration? = nil, _ body: @escaping @Sendable (_ term: Lease) async throws -> Result
    ) async throws -> Result {
        do {
            let result = try await mutex.withLock(timeout: timeout) { term in
                await tell()
                return try await body(term)
            }
            await tell()
            return result
        } catch {
            await tell()
            throw error
        }
    }

    /// Waits until this process leads. It does until ``resign(_:)``, or until the lease is lost or let go.
    public func campaign(timeout: Duration? = nil) async throws(RedisDCError) -> Lease {
        let term = try await mutex.lock(timeout: timeout)
        await tell()
        return term
    }

    /// Lets the next candidate lead.
    public func resign(_ term: Lease) async throws(RedisDCError) {
        try await term.release()
        await tell()
    }

    /// Who leads now, if anyone does.
    public func leader() async throws(RedisDCError) -> Leader? {
        guard let holder = try await mutex.coordinator.inspect(name, limit: 1)?.holders.first else { return nil }
        return Leader(node: holder.node, session: holder.session, term: holder.fence)
    }

    /// Who leads now, and each time that it is another one or nobody. Who reads slowly misses leaders, but not the last.
    ///
    /// A leader tells that it leads or has resigned; one that dies is found out by looking each `pollInterval`. It ends when
    /// the reader stops.
    public func changes() -> AsyncStream<Leader?> {
        let (stream, continuation) = AsyncStream.makeStream(of: Leader?.self, bufferingPolicy: .bufferingNewest(1))
        let watching = Task {
            let (looks, look) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            look.yield()
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await self.hear(look) }
                group.addTask {
                    while !Task.isCancelled {
                        try? await Task.sleep(for: pollInterval)
                        look.yield()
                    }
                }
                var last: Leader??
                for await _ in looks {
                    // Where it cannot be had now, the next look is soon.
                    guard case .success(let now) = await lookedUp() else { continue }
                    if last != .some(now) { continuation.yield(now) }
                    last = .some(now)
                }
                group.cancelAll()
            }
        }
        continuation.onTermination = { _ in watching.cancel() }
        return stream
    }

    private func lookedUp() async -> Result<Leader?, RedisDCError> {
        do { return .success(try await leader()) } catch { return .failure(error) }
    }

    private func hear(_ look: AsyncStream<Void>.Continuation) async {
        while !Task.isCancelled {
            try? await redis.withSubscription(to: [channel]) { events in
                look.yield()
                for try await _ in events { look.yield() }
            }
            try? await Task.sleep(for: pollInterval)
        }
    }

    /// A hint: who does not hear it looks later.
    private func tell() async { _ = try? await redis.publish("", to: channel) }
}

extension Coordinator {
    /// An election that all nodes share.
    ///
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func election(_ name: String) throws(RedisDCError) -> Election {
        let mutex = try mutex(name)
        let channel = place.key("leader:\(name)", partition: place.partition(of: name))
        return Election(
            mutex: mutex, redis: redis, channel: .channel(channel),
            pollInterval: min(configuration.pollInterval, .maxWait))
    }
}
