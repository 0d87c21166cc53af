import Hiredis

#if LoggingSupport
    import Logging
#endif
#if MetricsSupport
    import CoreMetrics
#endif

/// The logs and metrics of presence, which ``PresenceConfiguration/instruments`` lists. Does nothing
/// where a trait is disabled or no backend was bootstrapped.
final class PresenceInstruments: Sendable {
    private let backends: Backends
    #if MetricsSupport
        private let meters: PresenceMeters?
    #endif

    init(_ instruments: RedisInstruments) {
        backends = Backends(instruments)
        #if MetricsSupport
            meters = backends.metrics.map { PresenceMeters($0) }
        #endif
    }

    func operation() {
        #if MetricsSupport
            meters?.operations.increment()
        #endif
    }

    func batch() {
        #if MetricsSupport
            meters?.batches.increment()
        #endif
    }

    /// Records the objects that a sweep has ended.
    func swept(_ count: Int) {
        #if MetricsSupport
            if count > 0 { meters?.swept.increment(by: count) }
        #endif
    }

    func lost(_ cause: PresenceLoss.Cause) {
        #if MetricsSupport
            meters?.losses.increment()
        #endif
        #if LoggingSupport
            backends.logger?.warning(
                "the session of a presence bucket has ended", metadata: ["presence_cause": "\(cause)"])
        #endif
    }

    /// Records that operations were repeated which Redis had confirmed and lost.
    func repaired(_ count: Int) {
        guard count > 0 else { return }
        #if MetricsSupport
            meters?.repaired.increment(by: count)
        #endif
        #if LoggingSupport
            backends.logger?.notice(
                "repeated presence operations that Redis had lost", metadata: ["presence_operations": "\(count)"])
        #endif
    }

    func heartbeatFailed(_ error: GameServiceError) {
        #if LoggingSupport
            backends.logger?.warning(
                "a presence heartbeat failed, will try again", metadata: ["presence_error": "\(error.code)"])
        #endif
    }

    func gap() {
        #if MetricsSupport
            meters?.gaps.increment()
        #endif
    }

    func snapshot() {
        #if MetricsSupport
            meters?.snapshots.increment()
        #endif
    }

    /// Records the number of buckets that are open.
    func buckets(_ count: Int) {
        #if MetricsSupport
            meters?.buckets.record(count)
        #endif
    }
}

#if MetricsSupport
    /// Created once.
    private struct PresenceMeters: Sendable {
        let operations: Counter
        let batches: Counter
        let swept: Counter
        let losses: Counter
        let repaired: Counter
        let gaps: Counter
        let snapshots: Counter
        let buckets: Gauge

        init(_ factory: any MetricsFactory) {
            operations = Counter(label: "presence_operations", factory: factory)
            batches = Counter(label: "presence_batches", factory: factory)
            swept = Counter(label: "presence_swept", factory: factory)
            losses = Counter(label: "presence_losses", factory: factory)
            repaired = Counter(label: "presence_repaired", factory: factory)
            gaps = Counter(label: "presence_gaps", factory: factory)
            snapshots = Counter(label: "presence_snapshots", factory: factory)
            buckets = Gauge(label: "presence_buckets", factory: factory)
        }
    }
#endif
