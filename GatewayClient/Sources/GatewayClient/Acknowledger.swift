/// Acknowledges positions in the background: the latest one, one call at a time.
final class Acknowledger: Sendable {
    private let cursors: AsyncStream<String>.Continuation
    private let task: Task<Void, Never>

    init(_ client: GatewayClient) {
        let (stream, cursors) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.cursors = cursors
        // Its own task: what was handled is acknowledged even if the receiver's task is cancelled.
        task = Task {
            for await cursor in stream {
                // A failure that is not repeated is of no consequence: the next position covers this one, and a message
                // that was not acknowledged comes again.
                try? await client.acknowledge(cursor)
                try? await Task.sleep(for: client.configuration.acknowledgePause)
            }
        }
    }

    deinit { task.cancel() }

    /// Acknowledges a position soon.
    func add(_ cursor: String) { cursors.yield(cursor) }

    /// Waits until the last position was acknowledged, for a limited time.
    func finish(within time: Duration) async {
        cursors.finish()
        let task = task
        let limit = Task {
            try? await Task.sleep(for: time)
            task.cancel()
        }
        await task.value
        limit.cancel()
    }
}
