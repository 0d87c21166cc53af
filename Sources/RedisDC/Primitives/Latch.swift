// Waiting until so many resources have happened.
import Hiredis

/// Opens once, when it has been counted down so often.
///
/// ```swift
/// let loaded = try coordinator.latch("loaded", count: 3)
/// try await loaded.countDown(id: shard)         // by each of three
/// try await loaded.wait(timeout: .seconds(60)) // by anyone
/// ```
///
/// **Guarantees**
/// - An id counts once, however often and from wherever it is counted down.
/// - Once open it stays open, for those too who come later, until it is destroyed.
/// - Who takes part with ``withParticipation(_:)`` is counted when its body ends. When its process dies, it counts as down
///   or breaks the latch, as the latch was made: then everyone who waits, or comes to wait, gets `.broken`.
public struct Latch: Sendable {
    /// What the death of a participant is.
    public enum Death: Sendable { case countsAsDown, breaks }

    /// Most to count.
    public static let maxCount = 1_000_000

    let resource: Resource
    let engine: Engine
    let coordinator: Coordinator

    public var name: String { resource.name }

    /// Counts down by one.
    ///
    /// - Parameter id: counts once; 1 to 512 bytes without control characters. `nil` counts each call.
    /// - Returns: how many are still to come: 0 for the last one, and for those after it. A retry after a lost reply is told the
    ///   same again.
    /// - Throws: `.broken`, `.destroyed`, `.conflict`, `.invalidArgument`, `.connectionLost` with `mayHaveRun`.
    @discardableResult
    public func countDown(id: String? = nil) async throws(RedisDCError) -> Int {
        if let id { try ResourceName.validate(id) }
        return try await engine.call(.countDown(resource, id: id))
    }

    /// Waits until it is open.
    ///
    /// - Parameter timeout: from 1 ms; 0 tries once, `nil` waits as long as it takes.
    /// - Throws: `.timedOut`, `.cancelled`, `.broken`, `.destroyed`, `.conflict`, `.stopped`.
    public func wait(timeout: Duration? = nil) async throws(RedisDCError) {
        guard try await engine.acquire(AcquireRequest(resource: resource), timeout: timeout) != nil else {
            throw RedisDCError(.timedOut, "the latch \"\(name)\" did not open in time")
        }
    }

    /// Runs `body` as one of those who count. At its end, however it ends, it counts as down.
    public func withParticipation<Result: Sendable>(
        _ body: @escaping @Sendable (Lease) async throws -> Result
    ) async throws -> Result {
        let request = AcquireRequest(resource: resource, way: .register, mode: .lease)
        return try await engine.holding(try await engine.lease(request, timeout: nil), body)
    }

    /// How many are still to come.
    public var remaining: Int {
        get async throws(RedisDCError) {
            guard let inspection = try await coordinator.inspect(name, limit: 1) else { return resource.permits ?? 0 }
            return max(0, inspection.permits - inspection.signalled)
        }
    }

    /// Deletes it, and wakes everyone who waits with `.destroyed`. The next use makes a new one.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool { try await engine.call(.destroy(resource)) == 1 }
}

extension Coordinator {
    /// A latch that all nodes share. All must make it with the same count and the same meaning of a death.
    ///
    /// - Parameter count: 0 to 1,000,000.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func latch(
        _ name: String, count: Int, death: Latch.Death = .countsAsDown
    ) throws(RedisDCError) -> Latch {
        try ResourceName.validate(name)
        guard (0...Latch.maxCount).contains(count) else {
            throw RedisDCError(.invalidArgument, "count is \(count), expected 0 to \(Latch.maxCount)")
        }
        let resource = Resource(name: name, kind: .latch, permits: count, policy: death == .breaks ? "f" : "d")
        return Latch(resource: resource, engine: engine(of: name), coordinator: self)
    }
}
