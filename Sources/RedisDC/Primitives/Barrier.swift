// A meeting point for a fixed number, again and again.
import Hiredis

/// What a party of a barrier or a phaser learns when it passes.
public struct Arrival: Sendable, Hashable {
    /// How often it has opened before: 0 for the first time.
    public var generation: UInt64
    /// Which arrival it was, from 0. The last one may do what is to be done once.
    public var index: Int

    public init(generation: UInt64, index: Int) { (self.generation, self.index) = (generation, index) }
}

/// Lets nobody pass until so many have come, then all of them, and begins anew.
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
/// - It opens when so many wait whose sessions live, for all of them in one step: one that is fast and comes again is in the
///   next generation, whatever the others do.
/// - Who gives up (timeout, cancel) or dies before it opens is taken out, and another may come in its place; or it breaks
///   the barrier, as it was made, and the others get `.broken`.
/// - Who dies after it has opened holds nobody up: the others have passed.
public struct Barrier: Sendable {
    /// What it is when a party gives up or dies before it opens.
    public enum Failure: Sendable { case removesParty, breaks }

    /// Most parties: they pass in one step, in which the server does nothing else.
    public static let maxParties = 1024

    let resource: Resource
    let engine: Engine

    public var name: String { resource.name }

    /// Arrives, and waits for the others.
    ///
    /// - Parameter timeout: from 1 ms; `nil` waits as long as it takes.
    /// - Throws: `.timedOut`, `.cancelled` (then it has not arrived, unless `mayHaveRun`: Redis did not
    ///   answer), `.broken`, `.destroyed`, `.conflict`, `.stopped`.
    @discardableResult
    public func arriveAndWait(timeout: Duration? = nil) async throws(RedisDCError) -> Arrival {
        try await engine.arrive(resource, timeout: timeout)
    }

    /// Deletes it, broken or not, and wakes everyone who waits with `.destroyed`. The next arrival makes a new one.
    @discardableResult
    public func destroy() async throws(RedisDCError) -> Bool { try await engine.call(.destroy(resource)) == 1 }
}

extension Engine {
    nonisolated func arrive(_ resource: Resource, timeout: Duration?) async throws(RedisDCError) -> Arrival {
        if timeout == .zero {
            throw RedisDCError(.invalidArgument, "the timeout is 0: who does not wait does not arrive")
        }
        guard let grant = try await acquire(AcquireRequest(resource: resource, way: .arrive), timeout: timeout) else {
            throw RedisDCError(.timedOut, "not all came to \"\(resource.name)\" in time")
        }
        return Arrival(grant)
    }
}

extension Arrival {
    init(_ grant: EngineStateMachine.Grant) {
        self.init(generation: grant.value / 1024, index: Int(grant.value % 1024))
    }
}

extension Coordinator {
    /// A barrier that all nodes share. All must make it for the same number and with the same meaning of a failure.
    ///
    /// - Parameter parties: 1 to 1,024.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func barrier(
        _ name: String, parties: Int, failure: Barrier.Failure = .removesParty
    ) throws(RedisDCError) -> Barrier {
        try ResourceName.validate(name)
        guard (1...Barrier.maxParties).contains(parties) else {
            throw RedisDCError(.invalidArgument, "parties is \(parties), expected 1 to \(Barrier.maxParties)")
        }
        let resource = Resource(name: name, kind: .barrier, permits: parties, policy: failure == .breaks ? "b" : "o")
        return Barrier(resource: resource, engine: engine(of: name))
    }
}
