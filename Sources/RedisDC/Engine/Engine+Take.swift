// How every primitive waits for its turn.
import Hiredis

extension Engine {
    /// Waits until the wish is granted.
    ///
    /// - Parameter timeout: `nil` waits as long as it takes, 0 tries once.
    /// - Returns: `nil` when it was only tried, and not to be had.
    nonisolated func take(_ wish: Wish, timeout: Duration?) async throws(RedisDCError) -> EngineMachine.Grant? {
        if let timeout, timeout < .zero {
            throw RedisDCError(.invalidArgument, "timeout is \(timeout), expected 0 or more")
        }
        var wish = wish
        wish.queues = timeout != .zero
        if instruments.areOff { return try await grant(wish, timeout) }
        return try await instruments.waiting { [wish] () async throws(RedisDCError) in
            try await grant(wish, timeout)
        } isGranted: {
            $0 != nil
        }
    }

    private nonisolated func grant(
        _ wish: Wish, _ timeout: Duration?
    ) async throws(RedisDCError) -> EngineMachine.Grant? {
        guard case .granted(let grant) = try await acquire(wish, timeout: wish.queues ? timeout : nil) else {
            return nil
        }
        return grant
    }

    /// The same, as a lease.
    nonisolated func lease(
        _ wish: Wish, timeout: Duration?, orElse message: @autoclosure () -> String
    ) async throws(RedisDCError) -> Lease {
        guard let grant = try await take(wish, timeout: timeout) else { throw RedisDCError(.timedOut, message()) }
        return Lease(grant, name: wish.thing.name, count: wish.count, engine: self)
    }
}
