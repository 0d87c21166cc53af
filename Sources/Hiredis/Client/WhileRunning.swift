// The form `withSomething { }` of everything that has a `run()`.

/// Runs `run` while `body` runs, and ends it then.
///
/// It has a task of its own, since a child task would be cancelled together with the body: when the task is cancelled, what
/// the body has in hand can still be given back.
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
