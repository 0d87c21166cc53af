/// Runs an operation, and cancels it when a time has passed.
///
/// - Throws: the operation's error; `GatewayError.network` after the time.
func withTimeout<Value: Sendable>(
    _ time: Duration, _ what: String, _ operation: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        defer { group.cancelAll() }
        group.addTask { try await operation() }
        group.addTask {
            try await Task.sleep(for: time)
            throw GatewayError(.network, "\(what) within \(time)", mayHaveRun: true)
        }
        guard let value = try await group.next() else { throw CancellationError() }
        return value
    }
}
