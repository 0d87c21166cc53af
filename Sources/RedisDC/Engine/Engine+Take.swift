// How every primitive waits for its turn.
import Hiredis

extension Engine {
    /// - Parameter timeout: `nil` waits as long as it takes, 0 tries once.
    nonisolated func errand(_ wish: Wish, timeout: Duration?) throws(RedisDCError) -> Errand {
        if let timeout, timeout < .zero {
            throw RedisDCError(.invalidArgument, "timeout is \(timeout), expected 0 or more")
        }
        if timeout == .zero { return makeErrand(.take(wish.once, deadline: nil)) }
        return makeErrand(.take(wish, deadline: timeout.map { now + min($0, .longest) }))
    }

    /// Waits until the wish is granted, or is not to be.
    nonisolated func carryOut(_ errand: Errand) async {
        if instruments.areOff { await run(errand) } else { await runObserved(errand) }
    }

    /// Apart, because what it keeps while it waits is not needed otherwise.
    @inline(never)
    private nonisolated func runObserved(_ errand: Errand) async {
        _ = try? await instruments.waiting { () async throws(RedisDCError) in
            await run(errand)
            return try errand.isGranted()
        } isGranted: {
            $0
        }
    }

    /// Waits until the wish is granted.
    nonisolated func obtain(_ errand: Errand) async throws(RedisDCError) {
        await carryOut(errand)
        try errand.expectGranted()
    }

    /// - Returns: `nil` when it was only tried, and not to be had.
    nonisolated func take(_ wish: Wish, timeout: Duration?) async throws(RedisDCError) -> EngineMachine.Grant? {
        let errand = try errand(wish, timeout: timeout)
        await carryOut(errand)
        return try errand.grant()
    }

    /// The same, as a lease.
    nonisolated func lease(
        _ wish: Wish, timeout: Duration?
    ) async throws(RedisDCError) -> Lease {
        let errand = try errand(wish, timeout: timeout)
        await carryOut(errand)
        guard let grant = try errand.grant() else { throw errand.timedOut }
        return Lease(grant, name: wish.thing.name, count: wish.count, engine: self)
    }
}
