import HTTPTypes
import Hummingbird
import InMemoryTracing
import Testing
import Tracing

@testable import Gateway

/// The gateway's program adds Hummingbird's middleware for spans, as an application does that mounts the gateway.
@Suite("Spans")
struct TracingTests {
    /// The system of a process has one tracer, for all of its tests.
    private static let tracer: InMemoryTracer = {
        let tracer = InMemoryTracer()
        InstrumentationSystem.bootstrap(tracer)
        return tracer
    }()

    @Test("a call has a span with its route, its commands are spans below it, and none has a secret")
    func call() async throws {
        let tracer = Self.tracer
        try await withNodes(addCalls: { _, router in router.add(middleware: TracingMiddleware()) }) { nodes, _ in
            let alice = try await TestClient(nodes[0].url, "alice")
            _ = try await alice.send(["for nobody else"], to: ["alice"])
            try await until("the span has ended") {
                tracer.finishedSpans.contains { $0.operationName == "/v1/send" }
            }
            let spans = tracer.finishedSpans
            let call = try #require(spans.first { $0.operationName == "/v1/send" })
            #expect(call.kind == .server)
            let traced = spans.filter { $0.traceID == call.traceID }
            #expect(traced.contains { $0.kind == .client }, "\(spans.map(\.operationName))")
            for span in spans {
                var texts = [span.operationName]
                // The attributes are no sequence.
                // swift-format-ignore: ReplaceForEachWithForLoop
                span.attributes.forEach { key, value in texts.append("\(key)=\(value)") }
                texts += span.errors.map { "\($0.error) \($0.attributes)" }
                for secret in ["secret of alice", "for nobody else"] {
                    #expect(!texts.contains { $0.contains(secret) }, "\(texts)")
                }
            }
        }
    }
}
