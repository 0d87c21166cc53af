// The suites of this target that contain others.
import Testing

@Suite("The client with a real server")
enum ServerTests {}
