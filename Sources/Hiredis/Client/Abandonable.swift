import NIOConcurrencyHelpers

/// Awaits an operation that cannot be cancelled, but no longer than until the current task is
/// cancelled.
///
/// On cancellation the call throws `.cancelled` immediately. The operation continues, and its value
/// then goes to `discard`.
///
/// - Parameter failed: called when the operation yields no value, whether or not the caller still
///   waits.
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

/// Gives the caller's continuation to the first of two: the operation's end and the cancellation.
private final class Handoff<Value: Sendable>: Sendable {
    typealias Continuation = CheckedContinuation<Result<Value, RedisError>, Never>

    private enum Phase {
        case starting
        case waiting(Continuation)
        case over
    }
    private let phase = NIOLockedValueBox(Phase.starting)

    static var cancelled: RedisError { RedisError(.cancelled, "the task was cancelled") }

    /// - Returns: whether the operation is to begin; `false` when the task is already cancelled.
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
