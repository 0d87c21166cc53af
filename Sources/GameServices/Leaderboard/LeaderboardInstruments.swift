import CoordinationBase
import Hiredis

#if MetricsSupport
    import CoreMetrics
#endif

/// The metrics of leaderboards. Does nothing where the trait is disabled or no backend was
/// bootstrapped. Names and scores are never included.
struct LeaderboardInstruments: Sendable {
    #if MetricsSupport
        private let submits: Counter?
        private let reads: Counter?
        private let duration: CoreMetrics.Timer?
    #endif

    init(_ instruments: RedisInstruments) {
        #if MetricsSupport
            let factory = Backends(instruments).metrics
            submits = factory.map { Counter(label: "leaderboard_submits", factory: $0) }
            reads = factory.map { Counter(label: "leaderboard_reads", factory: $0) }
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
}
