// Where logs, metrics and spans go. Each is behind a package trait of its own that is on by default.
#if LoggingSupport
    public import Logging
#endif
#if MetricsSupport
    public import CoreMetrics
#endif
#if TracingSupport
    public import Tracing
#endif

/// Where the client logs, counts and traces to. The defaults are what the process has bootstrapped when the client is
/// made; where that is nothing, nothing is spent.
///
/// - Log lines carry keys that begin with `redis_`; never a key, an argument or a password.
/// - Metrics: `redis_commands` (counter), `redis_command_duration` (timer), `redis_command_failures`,
///   `redis_reconnects` (by connection), `redis_lanes` (gauge), `redis_subscription_gaps`. No dimension holds a key name.
/// - Spans: one for each command, pipeline, script and blocking command, by OpenTelemetry's database conventions.
public struct RedisInstruments: Sendable {
    #if LoggingSupport
        /// `nil` logs nothing. Reconnects are logged at `info`, failed attempts at `warning`, the rest at `debug`.
        public var logger: Logger?
    #endif
    #if MetricsSupport
        /// `nil` is the factory that the process has bootstrapped.
        public var metrics: (any MetricsFactory)?
    #endif
    #if TracingSupport
        /// `nil` is the tracer that the process has bootstrapped.
        public var tracer: (any Tracer)?
    #endif

    public init() {}
}
