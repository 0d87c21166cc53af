#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The clock and the other surroundings of a client; tests replace them.
struct ClientEnvironment: Sendable {
    /// The clock, in milliseconds since 1970.
    var now: @Sendable () -> Int
    /// Waits between attempts.
    var sleep: @Sendable (Duration) async throws -> Void
    /// A random number from 0 to 1.
    var random: @Sendable () -> Double

    static let system = ClientEnvironment(
        now: { Int(Date().timeIntervalSince1970 * 1000) },
        sleep: { try await Task.sleep(for: $0) },
        random: { Double.random(in: 0..<1) })
}
