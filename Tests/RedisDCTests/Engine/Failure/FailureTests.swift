// The suite of the tests in this folder.
import Testing

extension EngineTests {
    @Suite("Failures", .serialized)
    struct FailureTests {}
}
