import Hiredis
import RedisDC
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests.FailureTests {
    @Test("8,000 waits that are given up during an outage, in which 3,000 are granted, take no permit")
    func givenUpWaits() async throws {
        try await withProxiedCoordinator { proxy, proxied, other, redis in
            let semaphore = try proxied.semaphore("tickets", permits: 0)
            try await semaphore.create()
            let waits = (0..<8_000).map { _ in Task { try await semaphore.wait() } }
            try await until("all wait") { try await other.inspect("tickets", limit: 1)?.waiterCount == waits.count }
            await proxy.refuse()
            await proxy.cutAll()
            for wait in waits { wait.cancel() }
            try await other.semaphore("tickets", permits: 0).signal(3_000)
            for wait in waits { #expect(await errorOf { try await wait.value }?.code == .cancelled) }
            await proxy.heal()
            // Confirmations, too, end the claims of the permits that were granted.
            try await until("no claim is left") {
                guard try await other.inspect("tickets", limit: 1)?.waiterCount == 0 else { return false }
                return try await Audit(redis).claims.isEmpty
            }
            let audit = try await Audit(redis)
            audit.check()
            #expect(audit.resources["tickets"]?.free == 3_000)
            #expect(audit.resources["tickets"]?.consumed == 0)
        }
    }
}
