// Where a part of the library logs, counts and traces to: what it was given, or what the process has bootstrapped.
#if LoggingSupport
    package import Logging
#endif
#if MetricsSupport
    package import CoreMetrics
#endif
#if TracingSupport
    package import Tracing
#endif

/// `RedisInstruments` looked up, once: `nil` for what the process does not have, so that nothing is spent on it.
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
    /// Nothing to time and to trace.
    package let isDisabled: Bool

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

    /// A span around `body`.
    ///
    /// - Parameter kind: what the span says of a failure. Its text is not for that: it may name things.
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
