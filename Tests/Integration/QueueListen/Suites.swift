// The suites of this target that contain others.
import Testing

@Suite("QueueListen")
enum QueueListenTests {}

extension QueueListenTests {
    @Suite("Failures", .serialized)
    struct FailureTests {}
}
