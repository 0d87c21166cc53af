#if LoggingSupport
    package import Logging
#endif
#if MetricsSupport
    package import CoreMetrics
#endif
#if TracingSupport
    package import Tracing
#endif

/// The logger, metrics factory and tracer of one part of the library: those it was given, or those
/// that the process has bootstrapped. They are looked up once, and `nil` where there is none, so
/// that disabled instruments cost nothing.
package struct Backends: Sendable {
    #if LoggingSupport
        package let logger: Logger?
    #endif
    #if MetricsSupport
        package let metrics: (any MetricsFactory)?
    #endif
    #if TracingSupport
        package let tracer: (any Tracer)?
    #endif
    /// Whether there is nothing to time and to trace.
    package let isDisabled: Bool

    /// Looks up what `instruments` leaves open.
    package init(_ instruments: RedisInstruments) {
        var isDisabled = true
        #if LoggingSupport
            logger = instruments.logger
        #endif
        #if MetricsSupport
            let metrics = instruments.metrics ?? MetricsSystem.factory
            self.metrics = metrics is NOOPMetricsHandler ? nil : metrics
            if self.metrics != nil { isDisabled = false }
        #endif
        #if TracingSupport
            let tracer = instruments.tracer ?? InstrumentationSystem.tracer
            self.tracer = tracer is NoOpTracer ? nil : tracer
            if self.tracer != nil { isDisabled = false }
        #endif
        self.isDisabled = isDisabled
    }

    /// Runs `body` in a span.
    ///
    /// - Parameter kind: returns what the span records of a failure. The failure's own text may
    ///   contain names.
    package func traced<Value, Failure>(
        _ name: String, _ body: () async -> Result<Value, Failure>, kind: (Failure) -> String
    ) async -> Result<Value, Failure> {
        #if TracingSupport
            guard let tracer else { return await body() }
            return await tracer.withAnySpan(name, ofKind: .internal) { span in
                let result = await body()
                if case .failure(let error) = result {
                    span.attributes["error.type"] = kind(error)
                    span.setStatus(.init(code: .error))
                }
                return result
            }
        #else
            return await body()
        #endif
    }
}
