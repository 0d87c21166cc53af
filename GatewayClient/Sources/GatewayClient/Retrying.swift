/// Repeats a call until it succeeds, fails permanently, or its time is up. All calls of the gateway are idempotent.
struct Retrying: Sendable {
    let nodes: NodeList
    let configuration: GatewayClientConfiguration
    let environment: ClientEnvironment

    /// Runs an operation with a node and the time that it may take.
    ///
    /// - Throws: the error of the last attempt, with `mayHaveRun` if any attempt may have had an effect; `.cancelled`.
    func run<Reply: Sendable>(
        timeout: Duration?, _ operation: (_ node: String, _ limit: Duration) async throws(GatewayError) -> Reply
    ) async throws(GatewayError) -> Reply {
        let clock = ContinuousClock()
        let end = clock.now + (timeout ?? configuration.callTimeout)
        let backoff = Backoff(configuration: configuration, nodes: nodes.count, random: environment.random)
        var (failures, mayHaveRun) = (0, false)
        while true {
            let node = nodes.current
            let limit = max(.milliseconds(1), min(configuration.requestTimeout, end - clock.now))
            var failure: GatewayError
            do throws(GatewayError) { return try await operation(node, limit) } catch { failure = error }
            // A refusal of a later attempt does not tell whether an earlier one had an effect.
            mayHaveRun = mayHaveRun || failure.mayHaveRun
            failure.mayHaveRun = mayHaveRun
            let delay = backoff.delay(failures: failures, retryAfter: failure.retryAfter)
            guard failure.isTransient, clock.now + delay < end else { throw failure }
            // The limit of requests is one for all nodes.
            if failure.code != .tooManyRequests { nodes.leave(node) }
            do { try await environment.sleep(delay) } catch {
                throw GatewayError(.cancelled, "the task was cancelled", mayHaveRun: mayHaveRun)
            }
            failures += 1
        }
    }
}
