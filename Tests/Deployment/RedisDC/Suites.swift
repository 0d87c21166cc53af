// The suites of this target that contain others.
import Testing

@Suite("Engine")
enum EngineTests {}

extension EngineTests {
    @Suite("Failures", .serialized)
    struct FailureTests {}
}

@Suite("Every primitive", .serialized)
enum KindTests {}
