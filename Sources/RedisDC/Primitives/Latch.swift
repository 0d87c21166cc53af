// A latch, which opens after a number of events and stays open.
import Hiredis

/// A latch that opens once, when it has been counted down a given number of times, and stays open.
///
/// ```swift
/// let loaded = try coordinator.latch("loaded", count: 3)
/// try await loaded.countDown(id: shard)         // by each of three
/// try await loaded.wait(timeout: .seconds(60)) // by anyone
/// ```
///
/// **Guarantees**
/// - An id counts once, however often and from whichever node it is counted down.
/// - An open latch stays open, also for later waiters, until it is destroyed.
/// - A participant of ``withParticipation(_:)`` is counted when its body ends. When its
///   process dies, it is counted or, with ``Death/breaks``, breaks the latch: current and later
///   waiters of a broken latch get `.broken`.
///
/// **Limits**
/// - The death of a participant is noticed after its session's TTL.
/// - A count without an id that throws `.connectionLost` with `mayHaveRun` may have counted; with
///   an id it can be repeated safely.
///
/// A ``Barrier`` opens again and again, and its parties wait for each other; a ``Condition`` keeps
/// no notification for later waiters.
public struct Latch: Sendable {
    /// The effect of a participant's death.
    public enum Death: Sendable {
        /// The participant is counted as if its body had ended.
        case countsAsDown
        /// The latch breaks and stays broken until it is destroyed.
        case breaks
    }

    /// The maximum count.
    public static let maxCount = 1_000_000

    let resource: Resource
    let engine: Engine
    let coordinator: Coordinator

    /// The name of the latch.
    public var name: String { resource.name }

    /// Counts down by one.
    ///
    /// - Parameter id: counts once; 1 to 512 bytes of UTF-8 without control characters or braces.
    ///   `nil` counts every call.
    /// - Returns: the remaining count: 0 for the last call and all later ones. A request that is
    ///   sent again after a lost reply gets the same answer.
    /// - Throws: `.broken`, `.destroyed`, `.conflict`, `.invalidArgument`, `.stopped`,
    ///   `.cancelled`, `.notConnected`, `.connectionLost` with `mayHaveRun`.
    @discardableResult
    public func countDown(id: String? = nil) async throws(RedisDCError) -> Int {
        if let id { try ResourceName.validate(id) }
        return try await engine.call(CountDown(latch: resource, id: id))
    }

    /// Waits until the latch is open. An open latch returns immediately.
    ///
    /// - Parameter timeout: `nil` waits without limit, 0 tries once.
    /// - Throws: `.timedOut`, `.cancelled`, `.broken`, `.destroyed`, `.conflict`,
    ///   `.invalidArgument`, `.lost`, `.notConnected`, and what ``Coordinator`` lists for all
    ///   operations.
    public func wait(timeout: Duration? = nil) async throws(RedisDCError) {
        try await engine.obtain(Acquire(resource: resource), timeout: timeout)
    }

    /// Runs `body` as a participant, and counts down when it ends, whether it returns or throws.
    ///
    /// `body` runs in the caller's isolation. It is cancelled when the caller is cancelled or the
    /// session is lost.
    ///
    /// - Parameters:
    ///   - body: receives the participation, which is lost with the session.
    /// - Throws: what `body` throws; `.lost` when the session was lost, also if the registration
    ///   was under way, which then may count as a participant that has died; `.cancelled`,
    ///   `.broken`, `.destroyed`, `.conflict`, `.stopped`.
    public func withParticipation<Result>(
        _ body: (Lease) async throws -> Result
    ) async throws -> Result {
        // The registration that the lost session may have counts as a participant that has died: a second one, in the next
        // session, would count in place of another participant.
        let request = Acquire(resource: resource, action: .register, mode: .lease, failsOnLoss: true)
        return try await engine.lease(request, timeout: nil).whileHeld(body)
    }

    /// The remaining count.
    ///
    /// - Throws: what ``Coordinator/inspect(_:limit:)`` throws.
    public var remaining: Int {
        get async throws(RedisDCError) {
            guard let inspection = try await coordinator.inspect(name, limit: 1) else { return resource.permits ?? 0 }
            return max(0, inspection.permits - inspection.signalled)
        }
    }

    /// Deletes the latch. All waiters throw `.destroyed`. The next operation creates a new latch.
    ///
    /// - Returns: whether there was one.
    /// - Throws: `.conflict`, `.stopped`, `.connectionLost` with `mayHaveRun`, `.notConnected`.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool { try await engine.call(Destroy(resource)) }
}

extension Coordinator {
    /// Returns a latch that all nodes share. All nodes must use the same count and the same
    /// `death`.
    ///
    /// - Parameters:
    ///   - name: 1 to 512 bytes of UTF-8 without control characters or braces.
    ///   - count: 0 to 1,000,000. A latch of 0 is open.
    ///   - death: the effect of a participant's death.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func latch(
        _ name: String, count: Int, death: Latch.Death = .countsAsDown
    ) throws(RedisDCError) -> Latch {
        try ResourceName.validate(name)
        try checkArgument("count", count, in: 0...Latch.maxCount, cannot: "make latch \"\(name)\"")
        let resource = Resource(name: name, kind: .latch, permits: count, policy: death == .breaks ? "f" : "d")
        return Latch(resource: resource, engine: engine(of: name), coordinator: self)
    }
}

// MARK: Operations

/// Counts a latch down, once for each id.
struct CountDown: EngineOperation {
    /// The remaining count.
    typealias Value = Int

    let latch: Resource
    let id: String?

    var name: String { latch.name }
    var describedResource: Resource? { latch }
    var once: Once { .slot }
    var remedy: Remedy { .again }
    var arguments: [RedisArgument] { latch.arguments + [.string(id ?? "")] }

    func script(_ family: Family?) -> RedisScript { Scripts.countDown }
}

extension Scripts {
    static let countDown = RedisScript(embedded: PackageResources.count_down_lua)
}
