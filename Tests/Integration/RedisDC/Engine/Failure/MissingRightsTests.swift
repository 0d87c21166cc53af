// Users that lack a right that the scripts need.
import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests.FailureTests {
    /// A command that a user lacks, and the request that then fails.
    struct MissingRight: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var command: String
        var breaksSubscription: Bool
    }

    static let missingRights = [
        MissingRight(testDescription: "heartbeats", command: "zrangebyscore", breaksSubscription: false),
        MissingRight(testDescription: "reconciliations", command: "zscore", breaksSubscription: true),
    ]

    @Test("waits fail with .notPermitted when the user lacks a right that these need", arguments: missingRights)
    func missingRight(_ right: MissingRight) async throws {
        try await withServer { server, redis, admin in
            _ = try await admin.send("ACL", "SETUSER", "few", "on", ">rights", "~*", "&*", "+@all")
            try await withTestClient(url: "redis://few:rights@127.0.0.1:\(server.port)") { few in
                try await withCoordinator(redis: redis, configuration: longTTL) { other in
                    try await withCoordinator(redis: few, configuration: shortTTL) { coordinator in
                        let waiting = Task {
                            try await coordinator.semaphore("s", permits: 0).wait(timeout: .seconds(60))
                        }
                        try await until("the waiter is queued") {
                            try await other.inspect("s")?.waiterCount == 1
                        }
                        _ = try await admin.send("ACL", "SETUSER", "few", .string("-" + right.command))
                        if right.breaksSubscription {
                            _ = try await admin.send("CLIENT", "KILL", "TYPE", "pubsub", "USER", "few")
                        }
                        let error = await errorOf { try await waiting.value }
                        #expect(error?.code == .notPermitted)
                        try await until("the waiter has left") { try await other.inspect("s")?.waiterCount == 0 }
                    }
                }
            }
        }
    }
}
