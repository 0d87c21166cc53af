// A barrier whose parties come and go.
import Hiredis

/// A barrier for as many as have registered, who come and go between the phases.
///
/// ```swift
/// let phaser = try coordinator.phaser("round")
/// try await phaser.withParty { party in
///     while let work = try await next() {
///         try await perform(work)
///         try await party.arriveAndWait()
///     }
/// }
/// ```
///
/// **Guarantees**
/// - A phase ends when all who are registered then have arrived, for all of them in one step.
/// - Who deregisters, or dies (after the session's TTL), is not waited for any more.
/// - When the last one has left, nothing of it stays: the phases begin at 0 again.
public struct Phaser: Sendable {
    let resource: Resource
    let engine: Engine

    public var name: String { resource.name }

    /// Someone who is waited for.
    public struct Party: Sendable {
        let phaser: Phaser
        /// The registration. It is lost with the session.
        public let lease: Lease

        /// Arrives at the end of the phase, and waits for the others.
        ///
        /// - Parameter timeout: from 1 ms; `nil` waits as long as it takes.
        /// - Throws: `.timedOut`, `.cancelled` (then it has not arrived, unless `mayHaveRun`: Redis did not
        ///   answer), `.lost` (it is not registered any more), `.stopped`.
        @discardableResult
        public func arriveAndWait(timeout: Duration? = nil) async throws(RedisDCError) -> Arrival {
            try lease.check()
            return try await phaser.engine.arrive(phaser.resource, timeout: timeout)
        }

        /// Is not waited for any more.
        public func deregister() async throws(RedisDCError) { try await lease.release() }
    }

    /// Registers one more party.
    ///
    /// - Throws: `.serverError` when there are 1,024 already; `.cancelled`, `.conflict`, `.stopped`.
    public func register() async throws(RedisDCError) -> Party {
        let request = AcquireRequest(resource: resource, way: .register, mode: .lease)
        return Party(phaser: self, lease: try await engine.lease(request, timeout: nil))
    }

    /// Runs `body` as a party, which is deregistered at its end.
    public func withParty<Result: Sendable>(
        _ body: @escaping @Sendable (Party) async throws -> Result
    ) async throws -> Result {
        let party = try await register()
        return try await engine.holding(party.lease) { _ in try await body(party) }
    }
}

extension Coordinator {
    /// A phaser that all nodes share. At most 1,024 parties at a time.
    ///
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func phaser(_ name: String) throws(RedisDCError) -> Phaser {
        try ResourceName.validate(name)
        return Phaser(resource: Resource(name: name, kind: .phaser, permits: 0), engine: engine(of: name))
    }
}
