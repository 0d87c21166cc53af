// What the engine knows of changes that are to be durable.
import CoordinationBase
import Hiredis

extension Engine {
    /// Returns the grant of a lease; `nil` if it is not held.
    nonisolated func grant(of claim: UInt64?) async -> ConfirmedChange? {
        guard let claim else { return nil }
        return await withCheckedContinuation { continuation in
            enter { continuation.resume(returning: $0.machine.grant(of: claim)) }
        }
    }

    /// Carries out an operation that is not about a claim of the caller, and waits until it is as durable as requested.
    nonisolated func call<Operation: EngineOperation>(
        _ operation: Operation, durability: Durability
    ) async throws(RedisDCError) -> Operation.Value {
        try await durableChanges.check(durability)
        let value = try await call(operation)
        if durability == .memory { return value }
        // It includes all earlier ones: a replica has a beginning of what the master has carried out.
        let change = await withCheckedContinuation { continuation in
            enter { continuation.resume(returning: $0.machine.lastChange) }
        }
        do throws(RedisDCError) {
            guard let change else { throw RedisDCError(.notDurable, "the session has ended", mayHaveRun: true) }
            try await durableChanges.confirm(change, durability, within: durableChanges.timeout)
        } catch {
            var error = error.prefixed("the operation has taken effect, but is not .\(durability)")
            error.mayHaveRun = true
            throw error
        }
        return value
    }
}

extension EngineStateMachine {
    /// The grant of a lease; `nil` if it is not held.
    fileprivate func grant(of id: ID) -> ConfirmedChange? {
        guard isLive, case .held(let number, _)? = claims[id]?.state, let slot = claims[id]?.slot else { return nil }
        return ConfirmedChange(session: life.id, slot: slot, number: number, kind: .held)
    }

    /// The last change that Redis has confirmed; `nil` without a session.
    fileprivate var lastChange: ConfirmedChange? {
        guard isLive else { return nil }
        return switch live.seen {
        case .written(let slot, let number):
            ConfirmedChange(session: life.id, slot: slot, number: number, kind: .written)
        case .ended(let slot, let number): ConfirmedChange(session: life.id, slot: slot, number: number, kind: .ended)
        case nil: ConfirmedChange(session: life.id, slot: nil, number: 0, kind: .written)
        }
    }
}
