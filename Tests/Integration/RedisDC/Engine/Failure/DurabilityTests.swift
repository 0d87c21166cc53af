// Durabilities that a server cannot confirm.
import Hiredis
import RedisDCTesting
import TestSupport
import Testing

@testable import RedisDC
@testable import RedisDCTestSupport

extension EngineTests.FailureTests {
    @Test("what the server cannot confirm is refused before anything is changed, and the message says what it needs")
    func unsupportedDurability() async throws {
        try await withCoordinators { _, coordinator, _, _ in
            let mutex = try coordinator.mutex("m")
            let error = await errorOf { _ = try await mutex.lock(durability: .fsynced) }
            #expect(error?.code == .unsupported)
            // An older server does not know the command, and others refuse it without an append-only file.
            #expect(error?.message.contains(".fsynced") == true, "\(error?.message ?? "")")
            let semaphore = try coordinator.semaphore("s", permits: 0)
            let refusal = await errorOf { _ = try await semaphore.signal(durability: .fsynced) }?.code
            #expect(refusal == .unsupported)
            for count in [0, -1, 1001] {
                let refusal = await errorOf { _ = try await mutex.lock(durability: .replicated(count)) }?.code
                #expect(refusal == .invalidArgument)
            }
            #expect(try await coordinator.inspect("m") == nil)
            #expect(try await coordinator.inspect("s") == nil)
            try await mutex.withLock(durability: .memory) { lease in
                #expect(lease.isHeld)
                let error = await errorOf { try await lease.makeDurable(.fsynced) }
                #expect(error?.code == .unsupported)
                #expect(lease.isHeld)
            }
        }
    }
}
