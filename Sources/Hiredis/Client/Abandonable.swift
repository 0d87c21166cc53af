import NIOConcurrencyHelpers

/// Awaits `operation`, but not beyond the cancellation of the current task: then it throws `.cancelled` at once, and what
/// the operation brings later goes to `discard`. For operations that cannot be cancelled themselves.
///
/// `failed` is called when there will be no value, whether someone still waits or not.
func abandonable<Value: Sendable>(
    _ operation: @escaping @Sendable () async throws(RedisError) -> Value,
    discard: @escaping @Sendable (Value) -> Void,
    failed: @escaping @Sendable () -> Void = {}
) async throws(RedisError) -> Value {
    let handoff = Handoff<Value>()
    let result = await withTaskCancellationHandler {
        await withCheckedContinuation { (continuation: Handoff<Value>.Continuation) in
            guard handoff.begin(continuation) else {
                failed()
                continuation.resume(returning: .failure(Handoff<Value>.cancelled))
                return
            }
            Task {
                do throws(RedisError) {
                    let value = try await operation()
                    if let waiting = handoff.end() {
                        waiting.resume(returning: .success(value))
                    } else {
                        discard(value)
                    }
                } catch {
                    failed()
                    handoff.end()?.resume(returning: .failure(error))
                }
            }
        }
    } onCancel: {
        handoff.end()?.resume(returning: .failure(Handoff<Value>.cancelled))
    }
    return try result.get()
}

/// Whoever ends it first has the continuation.
private final class Handoff<Value: Sendable>: Sendable {
    typealias Continuation = CheckedContinuation<Result<Value, RedisError>, Never>

    private enum Phase {
        case starting
        case waiting(Continuation)
        case over
    }
    private let phase = NIOLockedValueBox(Phase.starting)

    static var cancelled: RedisError { RedisError(.cancelled, "the task was cancelled") }

    func begin(_ continuation: Continuation) -> Bool {
        phase.withLockedValue { phase in
            if case .over = phase { return false }
            phase = .waiting(continuation)
            return true
        }
    }

    func end() -> Continuation? {
        phase.withLockedValue { phase in
            defer { phase = .over }
            if case .waiting(let continuation) = phase { return continuation }
            return nil
        }
    }
}
