import Foundation
import Hiredis
import TestSupport
import Testing

@testable import RedisDCTestSupport

/// A line of the scripts that prevents a fault, what replaces it, and a scenario that fails without
/// it.
struct Hazard: Sendable, CustomTestStringConvertible {
    typealias Nodes = @Sendable () async throws -> ForeignNode

    var testDescription: String
    /// The text in the scripts on one line that prevents the fault.
    var safeguard: String
    /// The text that replaces it.
    var replacement: String
    /// Returns whether the fact in `testDescription` holds.
    var scenario: @Sendable (Nodes, RedisClient) async throws -> Bool
}

extension Hazard {
    static let all =
        slots + sessions + expiries + watchers + permits + mutexes + cohorts + meetings + latches + groups + buffers
        + bounds
}

extension EngineTests {
    @Suite("Safeguards of the scripts", .serialized)
    struct MutationTests {
        @Test("a fact holds with its safeguard and fails without it", arguments: Hazard.all)
        func safeguard(_ hazard: Hazard) async throws {
            for isMutated in [false, true] {
                try await withServer { _, redis, _ in
                    let scripts = try ForeignNode.names().map { try ForeignNode.source($0).onOneLine }
                    try #require(
                        scripts.contains { $0.contains(hazard.safeguard) },
                        "the scripts do not contain \(hazard.safeguard)")
                    let holds = try await hazard.scenario(
                        {
                            try await ForeignNode(redis) { source in
                                guard isMutated else { return source }
                                return source.onOneLine
                                    .replacingOccurrences(of: hazard.safeguard, with: hazard.replacement)
                            }
                        }, redis)
                    #expect(holds != isMutated)
                }
            }
        }
    }
}
