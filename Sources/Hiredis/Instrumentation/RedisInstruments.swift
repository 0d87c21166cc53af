#if LoggingSupport
    public import Logging
#endif
#if MetricsSupport
    public import CoreMetrics
#endif
#if TracingSupport
    public import Tracing
#endif

/// The destinations of logs, metrics and spans. The defaults are those that the process has
/// bootstrapped when the client is made; without any, instrumentation costs nothing. Each of the
/// three is behind a package trait that is on by default.
///
/// - Log metadata keys begin with `redis_`. No log line contains a Redis key, an argument or a
///   password.
/// - Metrics: `redis_commands` (counter), `redis_command_duration` (timer),
///   `redis_command_failures`, `redis_reconnects` (by connection), `redis_lanes` (gauge),
///   `redis_subscription_gaps`, and in a cluster `redis_redirects` (by kind: `moved`, `ask`, or `again`
///   for a command that is repeated because the cluster cannot run it now). No dimension contains a
///   Redis key.
/// - Spans: one for each command, pipeline, script and blocking command, by OpenTelemetry's
///   database conventions.
public struct RedisInstruments: Sendable {
    #if LoggingSupport
        /// The logger; `nil` logs nothing. Ends of connections and reconnects are logged at `info`,
        /// failed attempts and a silent subscription connection at `warning`, the rest at `debug`.
        public var logger: Logger?
    #endif
    #if MetricsSupport
        /// The metrics factory; `nil` is the one that the process has bootstrapped.
        public var metrics: (any MetricsFactory)?
    #endif
    #if TracingSupport
        /// The tracer; `nil` is the one that the process has bootstrapped.
        public var tracer: (any Tracer)?
    #endif

    /// Makes the default: no logger, and the metrics factory and tracer that the process has
    /// bootstrapped.
    public init() {}
}
