// The suites of this target that contain others.
import Testing

@Suite("GameServices", .serialized)
enum GameServicesTests {}

@Suite("Presence", .serialized, .timeLimit(.minutes(10)))
enum PresenceTests {}
