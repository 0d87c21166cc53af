/// Runs an operation that can be cancelled from anywhere by the function that it receives.
///
/// - Throws: what the operation throws, `CancellationError` for example.
func withCancelling<Value: Sendable>(
    _ operation: (_ cancel: @escaping @Sendable () -> Void) async throws -> Value
) async throws -> Value {
    let (requests, continuation) = AsyncStream<Void>.makeStream()
    return try await withoutActuallyEscaping(operation) { escaping in
        // The group below has ended, and with it the child task, before this function returns.
        nonisolated(unsafe) let operation = escaping
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await operation { continuation.finish() } }
            group.addTask {
                for await _ in requests {}
                return nil
            }
            defer { group.cancelAll() }
            if let value = try await group.next() ?? nil { return value }
            group.cancelAll()
            guard let value = try await group.next() ?? nil else { throw CancellationError() }
            return value
        }
    }
}
