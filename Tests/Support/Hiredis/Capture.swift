// A recorder of the logs, metrics and spans of a client.
#if LoggingSupport && MetricsSupport && TracingSupport
    import Hiredis
    import InMemoryTracing
    import Logging
    import MetricsTestKit
    import TestSupport
    import Tracing

    struct Capture: Sendable {
        let metrics = TestMetrics()
        let tracer = InMemoryTracer()
        let log = CapturedLog()

        var instruments: RedisInstruments {
            var instruments = RedisInstruments()
            instruments.metrics = metrics
            instruments.tracer = tracer
            instruments.logger = Logger(label: "test") { [log] _ in log }
            return instruments
        }

        // MARK: Metrics

        func count(_ label: String, _ dimensions: [(String, String)] = []) -> Int {
            (try? metrics.expectCounter(label, dimensions)).map { Int($0.totalValue) } ?? -1
        }

        func durations() -> [Int64] { (try? metrics.expectTimer("redis_command_duration").values) ?? [] }

        func lanes() -> [Double] { (try? metrics.expectGauge("redis_lanes").values) ?? [] }

        // MARK: All texts

        /// All lines, labels, dimensions, names, attributes and errors that the client has emitted.
        var allText: [String] {
            var texts = log.lines.map { "\($0.level) \($0.message) \($0.metadata)" }
            texts += metrics.counters.map { "\($0.label) \($0.dimensions)" }
            texts += metrics.timers.map { "\($0.label) \($0.dimensions)" }
            texts += metrics.recorders.map { "\($0.label) \($0.dimensions)" }
            for span in tracer.finishedSpans {
                texts.append("\(span.operationName) \(span.status.map { "\($0)" } ?? "")")
                // The attributes are no sequence.
                // swift-format-ignore: ReplaceForEachWithForLoop
                span.attributes.forEach { key, value in texts.append("\(key)=\(value)") }
                texts += span.errors.map { "\($0.error) \($0.attributes)" }
                texts += span.events.map { "\($0)" }
            }
            return texts
        }
    }

    extension FinishedInMemorySpan {
        /// Returns an attribute as text.
        subscript(_ key: String) -> String? {
            switch attributes[key]?.toSpanAttribute() {
            case .string(let text): text
            case .int64(let number): "\(number)"
            case .int32(let number): "\(number)"
            default: nil
            }
        }
    }
#endif
