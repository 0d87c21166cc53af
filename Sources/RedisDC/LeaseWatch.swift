// Notifies the listeners of a lease when it is lost.
import Hiredis

/// The state of one lease (held, lost or released), and the listeners that are called on its loss.
///
/// The engine calls ``lose(_:)``; the lease calls ``finish()`` when it is released. Only the first
/// of the two has an effect.
final class LeaseWatch: Sendable {
    private enum State {
        case held([@Sendable (RedisDCError) -> Void])
        case lost(RedisDCError)
        case finished
    }
    private let state = Locked(State.held([]))

    /// The error of the lost lease; `nil` while it is not lost.
    var error: RedisDCError? {
        state.withLock { state in if case .lost(let error) = state { error } else { nil } }
    }
    var isLost: Bool { error != nil }

    /// Marks the lease as lost and calls all listeners.
    func lose(_ error: RedisDCError) {
        let listeners = state.withLock { state -> [@Sendable (RedisDCError) -> Void] in
            guard case .held(let listeners) = state else { return [] }
            state = .lost(error)
            return listeners
        }
        for listener in listeners { listener(error) }
    }

    /// Drops the listeners: a released lease cannot be lost.
    func finish() {
        state.withLock { state in if case .held = state { state = .finished } }
    }

    /// Calls `body` when the lease is lost, immediately if it is lost already.
    func onLoss(_ body: @escaping @Sendable (RedisDCError) -> Void) {
        let error = state.withLock { state -> RedisDCError? in
            switch state {
            case .held(let listeners):
                state = .held(listeners + [body])
                return nil
            case .lost(let error): return error
            case .finished: return nil
            }
        }
        if let error { body(error) }
    }
}
