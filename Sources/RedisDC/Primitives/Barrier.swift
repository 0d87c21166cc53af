// A repeated meeting point for a fixed number of parties.
import Hiredis

/// A barrier that opens when a fixed number of parties have arrived, again and again.
///
/// ```swift
/// let barrier = try coordinator.barrier("frame", parties: 4)
/// while isRunning {
///     try await simulate()
///     let arrival = try await barrier.arriveAndWait(timeout: .seconds(5))
///     if arrival.index == 0 { try await publishFrame() }
/// }
/// ```
///
/// **Guarantees**
/// - It opens as soon as the fixed number of parties with live sessions wait, for all of them in
///   one step. A fast party that arrives again is in the next generation, whatever the others do.
/// - A party that times out, is cancelled or dies before the barrier opens is removed, and another
///   may take its place. With ``Failure/breaks`` it breaks the barrier instead, and the others get
///   `.broken`.
/// - A party that dies after the barrier opened delays nobody: the others have passed.
///
/// **Limits**
/// - At most ``maxParties`` parties: they pass in one step, during which the server does nothing
///   else.
/// - The death of a waiting party is noticed after its session's TTL.
/// - A party whose session is lost while it waits arrives again in the next session, and its first
///   arrival may have opened the barrier without its knowledge. ``Arrival/generation`` shows it, or
///   ``CoordinatorConfiguration/failsWaitersOnLoss`` makes the wait throw `.lost` instead.
///
/// Parties that come and go between generations use a ``Phaser``; parties that exchange values an
/// ``Exchanger``.
public struct Barrier: Sendable {
    /// The effect of a party that gives up or dies before the barrier opens.
    public enum Failure: Sendable {
        /// The party is removed, and another may arrive in its place.
        case removesParty
        /// The barrier breaks: all its parties, and all that arrive later, get `.broken` until it
        /// is destroyed.
        case breaks
    }

    /// The maximum number of parties.
    public static let maxParties = 1024

    let resource: Resource
    let engine: Engine

    /// The name of the barrier.
    public var name: String { resource.name }

    /// Arrives and waits for the other parties.
    ///
    /// - Parameter timeout: more than 0; `nil` waits without limit.
    /// - Returns: the generation and this party's place in it.
    /// - Throws: `.timedOut` or `.cancelled` (the party has not arrived, unless `mayHaveRun` is set
    ///   because Redis did not answer), `.broken`, `.destroyed`, `.conflict` (the barrier has
    ///   another number of parties), `.invalidArgument` (the timeout is 0 or negative), `.lost`
    ///   (``CoordinatorConfiguration/failsWaitersOnLoss``), and what ``Coordinator`` lists for all
    ///   operations.
    @discardableResult
    public func arriveAndWait(timeout: Duration? = nil) async throws(RedisDCError) -> Arrival {
        try await engine.arrive(Acquire(resource: resource, action: .arrive), timeout: timeout)
    }

    /// Deletes the barrier, broken or not. All waiting parties throw `.destroyed`. The next arrival
    /// creates a new barrier.
    ///
    /// - Returns: whether there was one.
    /// - Throws: `.conflict`, `.stopped`, `.connectionLost` with `mayHaveRun`, `.notConnected`.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool { try await engine.call(Destroy(resource)) }
}

extension Engine {
    /// Arrives at a barrier or phaser and waits for the other parties.
    nonisolated func arrive(_ request: Acquire, timeout: Duration?) async throws(RedisDCError) -> Arrival {
        if timeout == .zero {
            throw RedisDCError(
                .invalidArgument,
                "cannot arrive at \(request.resource): timeout is 0, expected more than 0")
        }
        return Arrival(try await obtain(request, timeout: timeout))
    }
}

extension Coordinator {
    /// Returns a barrier that all nodes share. All nodes must use the same number of parties and
    /// the same `failure`.
    ///
    /// - Parameters:
    ///   - name: 1 to 512 bytes of UTF-8 without control characters or braces.
    ///   - parties: the number of parties that must arrive, 1 to 1,024.
    ///   - failure: the effect of a party that gives up or dies before the barrier opens.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func barrier(
        _ name: String, parties: Int, failure: Barrier.Failure = .removesParty
    ) throws(RedisDCError) -> Barrier {
        try ResourceName.validate(name)
        try checkArgument("parties", parties, in: 1...Barrier.maxParties, cannot: "make barrier \"\(name)\"")
        let resource = Resource(name: name, kind: .barrier, permits: parties, policy: failure == .breaks ? "b" : "o")
        return Barrier(resource: resource, engine: engine(of: name))
    }
}

/// The generation in which a party of a barrier, phaser or exchanger passed, and its place in it.
public struct Arrival: Sendable, Hashable {
    /// The number of times that the barrier opened before: 0 for the first time.
    public var generation: UInt64
    /// The order of this arrival in its generation, from 0. Use 0 to elect the party that does what
    /// must be done once.
    public var index: Int

    /// Creates an arrival.
    public init(generation: UInt64, index: Int) { (self.generation, self.index) = (generation, index) }
}

extension Arrival {
    init(_ grant: EngineStateMachine.Grant) {
        self.init(generation: grant.arrival / 1024, index: Int(grant.arrival % 1024))
    }
}
