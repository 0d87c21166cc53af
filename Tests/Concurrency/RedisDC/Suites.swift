// The suites of this target that contain others.
import Testing

@Suite("Engine")
enum EngineTests {}

@Suite("Every primitive", .serialized)
enum KindTests {}
