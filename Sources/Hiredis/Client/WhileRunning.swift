/// Runs a service while `body` runs, then cancels it and waits for its end.
///
/// The service runs in a task of its own. A child task would be cancelled together with the body,
/// and what the body holds could then not be given back.
package func whileRunning<Result>(
    _ run: @escaping @Sendable () async -> Void, _ body: () async throws -> Result
) async throws -> Result {
    let running = Task { await run() }
    func close() async {
        running.cancel()
        await running.value
    }
    do {
        let result = try await body()
        await close()
        return result
    } catch {
        await close()
        throw error
    }
}
