#if LoggingSupport
    package import Logging
#endif
#if MetricsSupport
    package import CoreMetrics
#endif
#if TracingSupport
    package import Tracing
#endif

/// The logger, metrics factory and tracer of one part of the library, looked up once: `nil` where
/// there is none or one that does nothing, so that disabled instruments cost nothing.
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

    /// Whether logs are received.
    package var hasLogger: Bool {
        #if LoggingSupport
            logger != nil
        #else
            false
        #endif
    }

    /// Looks up what the process has bootstrapped, as far as `instruments` has no other choice.
    package init(_ instruments: RedisInstruments) {
        var isDisabled = true
        #if LoggingSupport
            let logger = instruments.logger
            self.logger = logger?.handler is SwiftLogNoOpLogHandler ? nil : logger
        #endif
        #if MetricsSupport
            let metrics = instruments.metrics
            self.metrics = metrics is NOOPMetricsHandler ? nil : metrics
            if self.metrics != nil { isDisabled = false }
        #endif
        #if TracingSupport
            let tracer = instruments.tracer
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

/// Lets this process log nothing: for a program whose standard error is its user's.
package func discardLogs() {
    #if LoggingSupport
        LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
    #endif
}
