// The suites of this target that contain others.
import Testing

@Suite("Classic semaphore", .serialized)
enum ClassicSemaphoreTests {}

@Suite("Engine")
enum EngineTests {}

extension EngineTests {
    @Suite("Failures", .serialized)
    struct FailureTests {}
}

@Suite("Primitives")
enum PrimitiveTests {}

@Suite("Every primitive", .serialized)
enum KindTests {}
