// The suites of this target that contain others.
import Testing

@Suite("GameServices", .serialized)
enum GameServicesTests {}
