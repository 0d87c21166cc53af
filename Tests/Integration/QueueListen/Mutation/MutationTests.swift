import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen

/// A hazard, the line of a script that prevents it, and a scenario that fails without that line.
struct MailHazard: Sendable, CustomTestStringConvertible {
    /// The invariant in docs/failure-model.md.
    var invariant: String
    var testDescription: String
    var guardian: String
    var without: String
    /// Returns whether the invariant holds.
    var scenario: @Sendable (ForeignNode, RedisClient) async throws -> Bool
}

extension QueueListenTests {
    @Suite("Each safeguard of the scripts", .serialized)
    struct MutationTests {
        @Test("prevents its hazard, and nothing else does", arguments: MailHazard.all)
        func hazard(_ hazard: MailHazard) async throws {
            for isMutated in [false, true] {
                try await withServer { _, redis, _ in
                    var found = false
                    for name in ForeignNode.scripts {
                        found = try ForeignNode.source(name).contains(hazard.guardian) || found
                    }
                    try #require(found, "the scripts do not contain \(hazard.guardian)")
                    let node = ForeignNode(redis: redis) { source in
                        guard isMutated else { return source }
                        return source.replacingOccurrences(of: hazard.guardian, with: hazard.without)
                    }
                    let holds = try await hazard.scenario(node, redis)
                    #expect(holds != isMutated, "\(hazard.invariant), \(isMutated ? "without" : "with") the safeguard")
                }
            }
        }
    }
}

extension MailHazard {
    static let all = sends + later + work + losses + keptMessages + polls
}

extension ForeignNode {
    /// The messages of a mailbox, as a device of its own reads them.
    func texts(in name: String) async throws -> [String] {
        Self.texts(try await listen(to: name, device: "looker"))
    }
}
