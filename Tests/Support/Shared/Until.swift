import Testing

/// Waits until a condition holds.
///
/// - Parameters:
///   - what: the condition in words, for the issue that is recorded after a timeout.
///   - bound: the timeout, which only ends a test that has failed.
///   - condition: the condition, checked every two milliseconds.
/// - Throws: `CancellationError` after the timeout; the errors of the condition.
public func until(
    _ what: String, within bound: Duration = patience, _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + bound
    while !(try await condition()) {
        guard ContinuousClock.now < end else {
            Issue.record("timed out after \(bound): \(what)")
            throw CancellationError()
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}
