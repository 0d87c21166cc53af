// Logs, metrics and traces of the engine; each does nothing where its trait is off or no backend was bootstrapped.
import Hiredis

#if LoggingSupport
    import Logging
#endif
#if MetricsSupport
    import CoreMetrics
#endif

/// The logs, metrics and traces of the engine.
///
/// docs/observability.md lists them. Only the lines about long waits contain the name of a resource.
struct EngineInstruments: Sendable {
    private let backends: Backends
    #if MetricsSupport
        private let meters: EngineMeters?
    #endif
    /// Whether there is neither a metrics backend nor a tracer.
    var isDisabled: Bool { backends.isDisabled }

    init(_ instruments: RedisInstruments) {
        backends = Backends(instruments)
        #if MetricsSupport
            meters = backends.metrics.map { EngineMeters($0) }
        #endif
    }

    // MARK: Waiting and holding

    func waiting<Value>(
        _ body: () async throws(RedisDCError) -> Value, isGranted: (Value) -> Bool
    ) async throws(RedisDCError) -> Value {
        if isDisabled { return try await body() }
        let start = ContinuousClock.now
        let result = await traced("redisdc wait") { () async -> Result<Value, RedisDCError> in
            do throws(RedisDCError) { return .success(try await body()) } catch { return .failure(error) }
        }
        #if MetricsSupport
            if case .success(let value) = result, isGranted(value) {
                meters?.grants.increment()
                meters?.wait.recordNanoseconds((ContinuousClock.now - start).nanoseconds)
            }
        #endif
        return try result.get()
    }

    func holding<Value>(_ body: () async -> Result<Value, any Error>) async -> Result<Value, any Error> {
        if isDisabled { return await body() }
        let start = ContinuousClock.now
        let result = await traced("redisdc hold", body)
        #if MetricsSupport
            meters?.hold.recordNanoseconds((ContinuousClock.now - start).nanoseconds)
        #endif
        return result
    }

    private func traced<Value, Failure>(
        _ name: String, _ body: () async -> Result<Value, Failure>
    ) async -> Result<Value, Failure> {
        await backends.traced(name, body) { ($0 as? RedisDCError)?.code.description ?? "\(type(of: $0))" }
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

    /// Whether logs are received.
    var hasLogger: Bool { backends.hasLogger }

    /// Records that a call without a timeout waits for long, because its request could not be sent or was not answered.
    ///
    /// - Parameter purpose: such as `acquire mutex "orders"`.
    func cannotAsk(for purpose: String, _ reason: String) {
        #if LoggingSupport
            backends.logger?.warning(
                "a call without a timeout still waits, because Redis cannot be asked",
                metadata: ["redisdc_wait": "\(purpose)", "redisdc_reason": "\(reason)"])
        #endif
    }

    /// Records that a call without a timeout waits for long in the queue on the server.
    func waitsForOthers(_ purpose: String, _ reason: String) {
        #if LoggingSupport
            backends.logger?.info(
                "a call without a timeout still waits for others",
                metadata: ["redisdc_wait": "\(purpose)", "redisdc_reason": "\(reason)"])
        #endif
    }

    func record(_ event: CoordinatorEvent) {
        #if MetricsSupport
            if case .sessionLost = event { meters?.sessionsLost.increment() }
            if case .repaired(let operations) = event { meters?.repaired.increment(by: operations) }
        #endif
        #if LoggingSupport
            switch event {
            case .sessionStarted(let id):
                backends.logger?.debug("session with Redis began", metadata: ["redisdc_session": "\(id)"])
            case .sessionLost(let id, let reason):
                backends.logger?.warning(
                    "session with Redis lost", metadata: ["redisdc_session": "\(id)", "redisdc_reason": "\(reason)"])
            case .sessionRefused(let error):
                backends.logger?.error(
                    "Redis refuses a session or its heartbeat, will try again",
                    metadata: ["redisdc_error": "\(error.code)"])
            case .dataLost: backends.logger?.error("Redis has lost data of this namespace")
            case .repaired(let operations):
                backends.logger?.warning(
                    "Redis has lost operations, as after a failover; they were carried out again",
                    metadata: ["redisdc_repaired": "\(operations)"])
            case .claimSetAside(let id, _):
                backends.logger?.error(
                    "a claim of a dead process cannot be ended, because a record is damaged",
                    metadata: ["redisdc_claim": "\(id)"])
            }
        #endif
    }
}

#if MetricsSupport
    /// The metrics, created once.
    private struct EngineMeters: Sendable {
        let grants: Counter
        let wait: CoreMetrics.Timer
        let hold: CoreMetrics.Timer
        let waiting: Gauge
        let sessionsLost: Counter
        let leasesLost: Counter
        let retries: Counter
        let repaired: Counter

        init(_ factory: any MetricsFactory) {
            grants = Counter(label: "redisdc_grants", factory: factory)
            wait = CoreMetrics.Timer(label: "redisdc_wait_duration", factory: factory)
            hold = CoreMetrics.Timer(label: "redisdc_hold_duration", factory: factory)
            waiting = Gauge(label: "redisdc_waiting", factory: factory)
            sessionsLost = Counter(label: "redisdc_sessions_lost", factory: factory)
            leasesLost = Counter(label: "redisdc_leases_lost", factory: factory)
            retries = Counter(label: "redisdc_retries", factory: factory)
            repaired = Counter(label: "redisdc_repaired", factory: factory)
        }
    }
#endif
