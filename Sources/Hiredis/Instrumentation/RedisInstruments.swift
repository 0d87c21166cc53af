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
/// bootstrapped when the client is made (`LoggingSystem`, `MetricsSystem`, `InstrumentationSystem`);
/// `nil` switches one off. Each of the three is behind a package trait that is on by default.
///
/// ```swift
/// import Logging
///
/// var configuration = CoordinatorConfiguration()
/// configuration.instruments.logger?.logLevel = .debug   // for this coordinator alone
/// configuration.instruments.tracer = nil                // and no spans of it
/// ```
///
/// Metrics and spans cost nothing where nothing is bootstrapped. A process that has not bootstrapped
/// `LoggingSystem` receives the logs on standard error, from `info` on, as from every library that
/// logs through swift-log. ``disabled`` switches off all three.
///
/// `docs/observability.md` lists every metric, span, log message and metadata key. None of them
/// contains a Redis key, an argument, a message or a password. The name of a resource is only in the
/// line about a call without a timeout that waits for long.
public struct RedisInstruments: Sendable {
    #if LoggingSupport
        /// The logger; `nil` logs nothing. The default is a logger with the label `redisdc` of the
        /// system that the process has bootstrapped.
        ///
        /// Ends of connections and reconnects are logged at `info`, failed attempts and a silent
        /// subscription connection at `warning`, the rest at `debug`.
        public var logger: Logger? {
            get { chosenLogger.value { Logger(label: "redisdc") } }
            set { chosenLogger = .given(newValue) }
        }
        private var chosenLogger = Choice<Logger>.bootstrapped
    #endif
    #if MetricsSupport
        /// The metrics factory; `nil` counts nothing. The default is the one that the process has
        /// bootstrapped.
        public var metrics: (any MetricsFactory)? {
            get { chosenMetrics.value { MetricsSystem.factory } }
            set { chosenMetrics = .given(newValue) }
        }
        private var chosenMetrics = Choice<any MetricsFactory>.bootstrapped
    #endif
    #if TracingSupport
        /// The tracer; `nil` traces nothing. The default is the one that the process has
        /// bootstrapped.
        public var tracer: (any Tracer)? {
            get { chosenTracer.value { InstrumentationSystem.tracer } }
            set { chosenTracer = .given(newValue) }
        }
        private var chosenTracer = Choice<any Tracer>.bootstrapped
    #endif

    /// Makes the default: the logger, metrics factory and tracer that the process has bootstrapped.
    public init() {}

    /// No logs, no metrics and no spans.
    public static var disabled: RedisInstruments {
        var instruments = RedisInstruments().logOnly
        #if LoggingSupport
            instruments.logger = nil
        #endif
        return instruments
    }

    /// These instruments without metrics and spans, for connections on which no command of a user is
    /// sent.
    var logOnly: RedisInstruments {
        var copy = self
        #if MetricsSupport
            copy.metrics = nil
        #endif
        #if TracingSupport
            copy.tracer = nil
        #endif
        return copy
    }
}

/// A backend: the one that the process has bootstrapped, looked up when it is needed, or a given one.
private enum Choice<Backend: Sendable>: Sendable {
    case bootstrapped
    /// `nil` for none.
    case given(Backend?)

    func value(bootstrapped: () -> Backend) -> Backend? {
        switch self {
        case .bootstrapped: bootstrapped()
        case .given(let backend): backend
        }
    }
}
