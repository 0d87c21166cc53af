import CoordinationBase
import Hiredis

#if LoggingSupport
    import Logging
#endif
#if MetricsSupport
    import CoreMetrics
#endif

/// The logs and metrics of leaderboards. Does nothing where the trait is disabled or no backend was
/// bootstrapped. Names and scores are never included.
struct LeaderboardInstruments: Sendable {
    #if LoggingSupport
        private let logger: Logger?
    #endif
    #if MetricsSupport
        private let submits: Counter?
        private let reads: Counter?
        private let repaired: Counter?
        private let duration: CoreMetrics.Timer?
    #endif

    init(_ instruments: RedisInstruments) {
        let backends = Backends(instruments)
        #if LoggingSupport
            logger = backends.logger
        #endif
        #if MetricsSupport
            let factory = backends.metrics
            submits = factory.map { Counter(label: "leaderboard_submits", factory: $0) }
            reads = factory.map { Counter(label: "leaderboard_reads", factory: $0) }
            repaired = factory.map { Counter(label: "leaderboard_repaired", factory: $0) }
            duration = factory.map { CoreMetrics.Timer(label: "leaderboard_submit_duration", factory: $0) }
        #endif
    }

    /// Counts a submit, and times it if it succeeds.
    func submitting<Value>(
        _ body: () async throws(GameServiceError) -> Value
    ) async throws(GameServiceError) -> Value {
        #if MetricsSupport
            guard let duration else { return try await body() }
            let start = ContinuousClock.now
            submits?.increment()
            let value = try await body()
            duration.recordNanoseconds((ContinuousClock.now - start).nanoseconds)
            return value
        #else
            return try await body()
        #endif
    }

    /// Counts a read.
    func read() {
        #if MetricsSupport
            reads?.increment()
        #endif
    }

    /// Records that submits were repeated which Redis had confirmed and lost.
    func repaired(_ count: Int) {
        guard count > 0 else { return }
        #if MetricsSupport
            repaired?.increment(by: count)
        #endif
        #if LoggingSupport
            logger?.notice("submitted scores again that Redis had lost", metadata: ["leaderboard_submits": "\(count)"])
        #endif
    }

    /// Records that Redis has lost submits, and refuses their repetitions.
    func notRepaired(_ count: Int) {
        guard count > 0 else { return }
        #if LoggingSupport
            logger?.error("Redis has lost submits and refuses them now", metadata: ["leaderboard_submits": "\(count)"])
        #endif
    }
}
