/// The loop behind every lasting connection: connect, serve it until it ends, pause, repeat.
struct Reconnecting {
    private let delays: ClosedRange<Duration>
    private let instruments: Instruments
    private let name: String

    init(_ transport: Transport, _ instruments: Instruments, name: String) {
        let delays = transport.configuration.reconnectDelay
        // Another server may take over at any moment.
        self.delays = transport.configuration.topology == .single ? delays : delays.clamped(to: .zero...(.seconds(1)))
        self.instruments = instruments
        self.name = name
    }

    /// Runs until the task is cancelled or `isStopped` returns true. `serve` returns when the
    /// connection has ended.
    func run<Connection: Sendable>(
        isStopped: () -> Bool,
        connect: () async throws(RedisError) -> Connection,
        serve: (Connection) async -> Void,
        failed: (RedisError) -> Void
    ) async {
        var backoff = Backoff(delays)
        var isFirst = true
        while !Task.isCancelled, !isStopped() {
            do throws(RedisError) {
                let connection = try await connect()
                if !isFirst { instruments.reconnected(name) }
                isFirst = false
                // The login succeeded, so the server works: only failed attempts lengthen the pauses.
                backoff.reset()
                await serve(connection)
                if !Task.isCancelled, !isStopped() { instruments.disconnected(name) }
            } catch {
                failed(error)
                if !Task.isCancelled, !isStopped() { instruments.connectFailed(name, error) }
            }
            if !Task.isCancelled, !isStopped() { try? await Task.sleep(for: backoff.next()) }
        }
    }
}
