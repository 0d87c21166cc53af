import NIOConcurrencyHelpers

/// An end that comes at most once, and the function that is called then.
final class EndSignal<Reason: Sendable>: Sendable {
    private struct State {
        var reason: Reason?
        var function: (@Sendable (Reason) -> Void)?
    }

    private let state = NIOLockedValueBox(State())

    /// Ends, unless it has ended before.
    func end(_ reason: Reason) {
        let function = state.withLockedValue { state in
            guard state.reason == nil else { return (@Sendable (Reason) -> Void)?.none }
            state.reason = reason
            return state.function
        }
        function?(reason)
    }

    /// Runs an operation, and calls a function if the end comes meanwhile, or has come before. For one operation at a time.
    func whileOpen<Result>(
        onEnd function: @escaping @Sendable (Reason) -> Void, _ operation: () async throws -> Result
    ) async rethrows -> Result {
        let reason = state.withLockedValue { state in
            state.function = function
            return state.reason
        }
        defer { state.withLockedValue { $0.function = nil } }
        if let reason { function(reason) }
        return try await operation()
    }
}
