// A barrier whose parties register and leave.
import Hiredis

/// A barrier for all registered parties, which may register and leave between its phases.
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
/// - A phase ends when all parties that are registered then have arrived, for all of them in one
///   step.
/// - A party that deregisters, or dies (after its session's TTL), is no longer awaited.
/// - When the last party has left, nothing of the phaser remains: the phases begin at 0 again.
///
/// **Limits**
/// - At most 1,024 parties at a time.
///
/// A ``Barrier`` has a fixed number of parties that need not register.
public struct Phaser: Sendable {
    let resource: Resource
    let engine: Engine

    /// The name of the phaser.
    public var name: String { resource.name }

    /// A registered party, which each phase waits for.
    public struct Party: Sendable {
        let phaser: Phaser
        /// The registration. It is lost with the session.
        public let lease: Lease

        /// Arrives at the end of the phase and waits for the other parties.
        ///
        /// - Parameter timeout: more than 0; `nil` waits without limit.
        /// - Returns: the phase and this party's place in it.
        /// - Throws: `.timedOut` or `.cancelled` (the party has not arrived, unless `mayHaveRun` is
        ///   set because Redis did not answer; it stays registered), `.lost` (the party is no
        ///   longer registered), `.invalidArgument` (the timeout is 0 or negative), and what
        ///   ``Coordinator`` lists for all operations.
        @discardableResult
        public func arriveAndWait(timeout: Duration? = nil) async throws(RedisDCError) -> Arrival {
            try lease.check()
            return try await phaser.engine.arrive(.arrivalOfParty(at: phaser.resource), timeout: timeout)
        }

        /// Ends the registration: the phaser waits for this party no longer.
        ///
        /// - Throws: what ``Lease/release()`` throws.
        public func deregister() async throws(RedisDCError) { try await lease.release() }
    }

    /// Registers one more party.
    ///
    /// - Returns: the party, until ``Party/deregister()``.
    /// - Throws: `.serverError` when there are 1,024 parties already; `.cancelled`, `.conflict`,
    ///   `.lost`, and what ``Coordinator`` lists for all operations.
    public func register() async throws(RedisDCError) -> Party {
        let request = Acquire(resource: resource, action: .register, mode: .lease)
        return Party(phaser: self, lease: try await engine.lease(request, timeout: nil))
    }

    /// Registers a party, runs `body`, and deregisters the party.
    ///
    /// `body` runs in the caller's isolation. It is cancelled when the caller is cancelled or the
    /// registration is lost.
    ///
    /// - Parameters:
    ///   - body: receives the party.
    /// - Throws: what `body` throws, and what ``register()`` and ``Lease/release()`` throw.
    public func withParty<Result>(
        _ body: (Party) async throws -> Result
    ) async throws -> Result {
        let party = try await register()
        return try await party.lease.whileHeld { _ in try await body(party) }
    }
}

extension Coordinator {
    /// Returns a phaser that all nodes share.
    ///
    /// - Parameter name: 1 to 512 bytes of UTF-8 without control characters or braces.
    /// - Throws: `.invalidArgument`. Nothing is sent.
    public func phaser(_ name: String) throws(RedisDCError) -> Phaser {
        try ResourceName.validate(name)
        return Phaser(resource: Resource(name: name, kind: .phaser, permits: 0), engine: engine(of: name))
    }
}

extension Acquire {
    /// The arrival of a registered party. It ends with the session, as the registration does: in another session it would
    /// count in place of another party.
    static func arrivalOfParty(at phaser: Resource) -> Acquire {
        Acquire(resource: phaser, action: .arrive, failsOnLoss: true)
    }
}
