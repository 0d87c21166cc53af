#if LoggingSupport
    import Logging
#endif
#if MetricsSupport
    import CoreMetrics
#endif
#if TracingSupport
    import Tracing
#endif

/// Logs, metrics and spans of the client. Its functions do nothing where a trait is off or nothing
/// is bootstrapped.
struct Instruments: Sendable {
    #if LoggingSupport
        private let logger: Logger?
    #endif
    #if MetricsSupport
        private let meters: Meters?
    #endif
    #if TracingSupport
        private let spans: Spans?
    #endif

    init(_ configuration: RedisConfiguration) {
        let backends = Backends(configuration.instruments)
        isDisabled = backends.isDisabled
        #if LoggingSupport
            logger = backends.logger
        #endif
        #if MetricsSupport
            meters = backends.metrics.map { Meters($0) }
        #endif
        #if TracingSupport
            spans = backends.tracer.map { Spans($0, configuration) }
        #endif
    }

    /// Whether there is nothing to count and to trace, so that commands need not pass through
    /// `measure`.
    let isDisabled: Bool

    // MARK: Commands

    /// Counts, times and traces one exchange with the server.
    ///
    /// - Parameter size: the number of commands in a pipeline.
    func measure<Value>(
        _ operation: @autoclosure () -> String, size: Int = 1, _ body: () async throws(RedisError) -> Value
    ) async throws(RedisError) -> Value {
        #if TracingSupport
            if let spans {
                return try await spans.measure(operation(), size: size) { () async throws(RedisError) in
                    try await count(size: size, body)
                }
            }
        #endif
        return try await count(size: size, body)
    }

    private func count<Value>(size: Int, _ body: () async throws(RedisError) -> Value) async throws(RedisError) -> Value
    {
        #if MetricsSupport
            guard let meters else { return try await body() }
            let start = ContinuousClock.now
            meters.commands.increment(by: size)
            defer { meters.duration.recordNanoseconds((ContinuousClock.now - start).nanoseconds) }
            do throws(RedisError) {
                return try await body()
            } catch {
                meters.failures.increment()
                throw error
            }
        #else
            return try await body()
        #endif
    }

    // MARK: Connections

    func reconnected(_ name: String) {
        #if LoggingSupport
            logger?.info("reconnected to Redis", metadata: [LogKey.connection: "\(name)"])
        #endif
        #if MetricsSupport
            meters?.reconnects[name]?.increment()
        #endif
    }

    func disconnected(_ name: String) {
        #if LoggingSupport
            logger?.info("connection to Redis ended", metadata: [LogKey.connection: "\(name)"])
        #endif
    }

    func connectFailed(_ name: String, _ error: RedisError) {
        #if LoggingSupport
            logger?.warning(
                "cannot connect to Redis; will try again",
                metadata: [LogKey.connection: "\(name)", LogKey.error: "\(error)"])
        #endif
    }

    /// Counts a command that a server of a cluster has not run.
    func redirected(_ refusal: ClusterRefusal) {
        #if MetricsSupport
            let kind =
                switch refusal {
                case .moved: "moved"
                case .ask: "ask"
                case .notNow: "again"
                }
            meters?.redirects[kind]?.increment()
        #endif
    }

    func masterChanged() {
        #if LoggingSupport
            logger?.info("the sentinels name a new master")
        #endif
    }

    func lanesInUse(_ count: Int) {
        #if MetricsSupport
            meters?.lanes.record(count)
        #endif
    }

    func gaveBack(_ command: String) {
        #if LoggingSupport
            logger?.debug(
                "gave back the element that a cancelled wait had taken", metadata: [LogKey.command: "\(command)"])
        #endif
    }

    func subscriptionGap() {
        #if MetricsSupport
            meters?.gaps.increment()
        #endif
    }

    func subscriptionSilent() {
        #if LoggingSupport
            logger?.warning("the subscription connection is silent; reconnecting")
        #endif
    }
}

#if LoggingSupport
    private enum LogKey {
        static let connection = "redis_connection"
        static let error = "redis_error"
        static let command = "redis_command"
    }
#endif
