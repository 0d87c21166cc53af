// The suites of this target that contain others.
import Testing

@Suite("QueueListen")
enum QueueListenTests {}
