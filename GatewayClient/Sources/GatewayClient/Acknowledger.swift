import Synchronization

/// Acknowledges positions in the background: the latest one, one call at a time.
final class Acknowledger: Sendable {
    private let latest = Latest()
    private let signals: AsyncStream<Void>.Continuation
    private let task: Task<Void, Never>

    /// The latest position that was handled.
    private final class Latest: Sendable {
        let cursor = Mutex<String?>(nil)
    }

    init(_ client: GatewayClient) {
        let (stream, signals) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.signals = signals
        // Its own task: what was handled is acknowledged even if the receiver's task is cancelled.
        task = Task { [latest] in
            var acknowledged: String?
            for await _ in stream {
                // The latest position covers those before it, also those whose call has failed.
                while let cursor = latest.cursor.withLock({ $0 }), cursor != acknowledged, !Task.isCancelled {
                    do throws(GatewayError) {
                        try await client.acknowledge(cursor)
                        acknowledged = cursor
                    } catch {
                        // A message that was not acknowledged comes again. A refusal would be repeated for ever.
                        if !error.isTransient { acknowledged = cursor }
                    }
                    try? await Task.sleep(for: client.configuration.acknowledgePause)
                }
            }
        }
    }

    deinit { task.cancel() }

    /// Acknowledges a position soon.
    func add(_ cursor: String) {
        latest.cursor.withLock { $0 = cursor }
        signals.yield()
    }

    /// Waits until the last position was acknowledged, for a limited time.
    func finish(within time: Duration) async {
        signals.finish()
        let task = task
        let limit = Task {
            try? await Task.sleep(for: time)
            task.cancel()
        }
        await task.value
        limit.cancel()
    }
}
