// What the engine logs, counts and traces; empty where a trait is off or nothing was bootstrapped.
import Hiredis

#if LoggingSupport
    import Logging
#endif
#if MetricsSupport
    import CoreMetrics
#endif
#if TracingSupport
    import Tracing
#endif

/// - Log lines carry keys that begin with `redisdc_`; never a name of a semaphore or mutex.
/// - Metrics: `redisdc_grants`, `redisdc_wait_duration` (of what was granted), `redisdc_hold_duration`, `redisdc_waiting`
///   (gauge, taken with each heartbeat), `redisdc_sessions_lost`, `redisdc_leases_lost`, `redisdc_retries`.
/// - Spans: `redisdc wait` and `redisdc hold`.
struct EngineInstruments: Sendable {
    #if LoggingSupport
        private let logger: Logger?
    #endif
    #if MetricsSupport
        private let meters: EngineMeters?
    #endif
    #if TracingSupport
        private let tracer: (any Tracer)?
    #endif
    /// Nothing to time and to trace.
    let areOff: Bool

    init(_ instruments: RedisInstruments) {
        var areOff = true
        #if LoggingSupport
            logger = instruments.logger
        #endif
        #if MetricsSupport
            meters = EngineMeters(instruments.metrics ?? MetricsSystem.factory)
            if meters != nil { areOff = false }
        #endif
        #if TracingSupport
            let tracer = instruments.tracer ?? InstrumentationSystem.tracer
            self.tracer = tracer is NoOpTracer ? nil : tracer
            if self.tracer != nil { areOff = false }
        #endif
        self.areOff = areOff
    }

    // MARK: Waiting and holding

    func waiting<Value>(
        _ body: () async throws(RedisDCError) -> Value, isGranted: (Value) -> Bool
    ) async throws(RedisDCError) -> Value {
        if areOff { return try await body() }
        let start = ContinuousClock.now
        let result = await traced("redisdc wait") { () async -> Result<Value, RedisDCError> in
            do throws(RedisDCError) { return .success(try await body()) } catch { return .failure(error) }
        }
        #if MetricsSupport
            if case .success(let value) = result, isGranted(value) {
                meters?.grants.increment()
                meters?.wait.recordNanoseconds((ContinuousClock.now - start).wholeMicroseconds64 * 1000)
            }
        #endif
        return try result.get()
    }

    func holding<Value>(_ body: () async -> Result<Value, any Error>) async -> Result<Value, any Error> {
        if areOff { return await body() }
        let start = ContinuousClock.now
        let result = await traced("redisdc hold", body)
        #if MetricsSupport
            meters?.hold.recordNanoseconds((ContinuousClock.now - start).wholeMicroseconds64 * 1000)
        #endif
        return result
    }

    private func traced<Value, Failure>(
        _ name: String, _ body: () async -> Result<Value, Failure>
    ) async -> Result<Value, Failure> {
        #if TracingSupport
            guard let tracer else { return await body() }
            return await tracer.withAnySpan(name, ofKind: .internal) { span in
                let result = await body()
                if case .failure(let error) = result {
                    // The kind only: a text may name things.
                    span.attributes["error.type"] = (error as? RedisDCError)?.code.description ?? "\(type(of: error))"
                    span.setStatus(.init(code: .error))
                }
                return result
            }
        #else
            return await body()
        #endif
    }

    // MARK: Events

    func heartbeat(waiting: Int) {
        #if MetricsSupport
            meters?.waiting.record(waiting)
        #endif
    }

    func retried() {
        #if MetricsSupport
            meters?.retries.increment()
        #endif
    }

    func leaseLost() {
        #if MetricsSupport
            meters?.leasesLost.increment()
        #endif
    }

    func happened(_ event: CoordinatorEvent) {
        #if MetricsSupport
            if case .sessionLost = event { meters?.sessionsLost.increment() }
        #endif
        #if LoggingSupport
            switch event {
            case .sessionStarted(let id):
                logger?.info("session with Redis begun", metadata: ["redisdc_session": "\(id)"])
            case .sessionLost(let id, let reason):
                logger?.warning(
                    "session with Redis lost", metadata: ["redisdc_session": "\(id)", "redisdc_reason": "\(reason)"])
            case .sessionRefused(let error):
                logger?.error(
                    "Redis refuses a session, will try again", metadata: ["redisdc_error": "\(error.code)"])
            case .dataLost: logger?.error("Redis has lost data of this namespace")
            }
        #endif
    }
}

#if MetricsSupport
    /// Made once. `nil` where the process has no metrics backend.
    private struct EngineMeters: Sendable {
        let grants: Counter
        let wait: CoreMetrics.Timer
        let hold: CoreMetrics.Timer
        let waiting: Gauge
        let sessionsLost: Counter
        let leasesLost: Counter
        let retries: Counter

        init?(_ factory: any MetricsFactory) {
            if factory is NOOPMetricsHandler { return nil }
            grants = Counter(label: "redisdc_grants", factory: factory)
            wait = CoreMetrics.Timer(label: "redisdc_wait_duration", factory: factory)
            hold = CoreMetrics.Timer(label: "redisdc_hold_duration", factory: factory)
            waiting = Gauge(label: "redisdc_waiting", factory: factory)
            sessionsLost = Counter(label: "redisdc_sessions_lost", factory: factory)
            leasesLost = Counter(label: "redisdc_leases_lost", factory: factory)
            retries = Counter(label: "redisdc_retries", factory: factory)
        }
    }
#endif

extension Duration {
    fileprivate var wholeMicroseconds64: Int64 { Int64(wholeMicroseconds) }
}
