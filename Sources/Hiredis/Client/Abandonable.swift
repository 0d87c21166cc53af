import NIOConcurrencyHelpers

/// Awaits `operation`, but not beyond the cancellation of the current task: then it throws `.cancelled` at once, and what
/// the operation brings later goes to `discard`. For operations that cannot be cancelled themselves.
///
/// `failed` is called when there will be no value, whether someone still waits or not.
func abandonable<Value: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Value,
    discard: @escaping @Sendable (Value) -> Void,
    failed: @escaping @Sendable () -> Void = {}
) async throws -> Value {
    let handoff = Handoff<Value>()
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
            guard handoff.begin(continuation) else {
                failed()
                continuation.resume(throwing: Handoff<Value>.cancelled)
                return
            }
            Task {
                do {
                    let value = try await operation()
                    if let waiting = handoff.end() { waiting.resume(returning: value) } else { discard(value) }
                } catch {
                    failed()
                    handoff.end()?.resume(throwing: error)
                }
            }
        }
    } onCancel: {
        handoff.end()?.resume(throwing: Handoff<Value>.cancelled)
    }
}

/// Whoever ends it first has the continuation.
private final class Handoff<Value: Sendable>: Sendable {
    private enum Phase {
        case starting
        case waiting(CheckedContinuation<Value, any Error>)
        case over
    }
    private let phase = NIOLockedValueBox(Phase.starting)

    static var cancelled: RedisError { RedisError(.cancelled, "the task was cancelled") }

    func begin(_ continuation: CheckedContinuation<Value, any Error>) -> Bool {
        phase.withLockedValue { phase in
            if case .over = phase { return false }
            phase = .waiting(continuation)
            return true
        }
    }

    func end() -> CheckedContinuation<Value, any Error>? {
        phase.withLockedValue { phase in
            defer { phase = .over }
            if case .waiting(let continuation) = phase { return continuation }
            return nil
        }
    }
}
