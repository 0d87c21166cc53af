import Testing

/// Waits until a condition holds. The bound only ends a test that has failed.
func until(
    _ what: String, within bound: Duration = .seconds(120), _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + bound
    while !(try await condition()) {
        guard ContinuousClock.now < end else {
            Issue.record("timed out after \(bound): \(what)")
            throw CancellationError()
        }
        try await Task.sleep(for: .milliseconds(5))
    }
}
