// Sends that wait for replicas and disks.
import Foundation
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import QueueListen
@testable import QueueListenTestSupport

extension QueueListenTests.FailureTests {
    @Test("fsynced on a server without WAITAOF is an error, and nothing is sent")
    func fsynced() async throws {
        try await withOffice { office, redis, _ in
            let error = await errorOf { try await office.send("a", to: "alice", durability: .fsynced) }
            #expect(error?.code == .unsupported)
            let size = try await redis.send("DBSIZE").integer
            #expect(size == 0)
        }
    }
}
