import NIOConcurrencyHelpers

/// Runs an operation that can be cancelled from anywhere by the function that it receives.
///
/// - Throws: what the operation throws, `CancellationError` for example.
func withCancelling<Value: Sendable>(
    _ operation: (_ cancel: @escaping @Sendable () -> Void) async throws -> Value
) async throws -> Value {
    try await withoutActuallyEscaping(operation) { escaping in
        // The task below has ended before this function returns.
        nonisolated(unsafe) let operation = escaping
        let handle = CancelHandle<Value>()
        let task = Task { try await operation { handle.cancel() } }
        handle.set(task)
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }
}

/// Cancels a task, whether it is known already or not.
private final class CancelHandle<Value: Sendable>: Sendable {
    private struct State {
        var task: Task<Value, any Error>?
        var isCancelled = false
    }

    private let state = NIOLockedValueBox(State())

    func set(_ task: Task<Value, any Error>) {
        let isCancelled = state.withLockedValue { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    func cancel() {
        let task = state.withLockedValue { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}
