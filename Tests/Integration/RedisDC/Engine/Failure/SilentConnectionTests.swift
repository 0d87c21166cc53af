// Connections that the network has lost without a word, while Redis can be reached.
import Hiredis
import RedisDC
import RedisDCTesting
import Synchronization
import TestSupport
import Testing

@testable import RedisDCTestSupport

extension EngineTests {
    @Suite("Silent connections", .timeLimit(.minutes(10)))
    struct SilentConnectionTests {}
}

extension EngineTests.SilentConnectionTests {
    @Test("a session, its leases and its waits survive connections that fall silent one after the other")
    func silentConnections() async throws {
        let waits = 500
        // The connection is replaced after three quarters of the TTL at the latest, which leaves 15 s to a busy machine. Only
        // the unanswered heartbeat replaces it: for other commands, a silent server counts as dead later than that.
        try await withProxiedCoordinator(
            configuration: longTTL, configure: { $0.silenceLimit = .seconds(600) }
        ) { proxy, proxied, other, redis in
            let losses = Atomic<Int>(0)
            let watching = Task {
                for await event in proxied.events() {
                    if case .sessionLost = event { losses.add(1, ordering: .relaxed) }
                }
            }
            defer { watching.cancel() }
            let lease = try await proxied.mutex("m").lock()
            let semaphore = try proxied.semaphore("s", permits: 0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<waits { group.addTask { try await semaphore.wait() } }
                try await until("all waits are queued") { try await other.inspect("s")?.waiterCount == waits }
                let session = try await other.inspect("m")?.holders.first?.session
                for _ in 1...2 {
                    let before = proxy.counters.acceptedConnections
                    await proxy.silenceOpenConnections()
                    // Both the commands and the wake-ups need a new one.
                    try await proxy.waitUntil(within: patience) { $0.acceptedConnections >= before + 2 }
                    try await untilHeartbeats(1, redis)
                    let lost = losses.load(ordering: .relaxed)
                    #expect(lease.isHeld && lost == 0)
                    #expect(try await other.inspect("m")?.holders.first?.session == session)
                    #expect(try await other.inspect("s")?.waiterCount == waits)
                }
                try await other.semaphore("s", permits: 0).signal(waits)
                try await group.waitForAll()
            }
            let lost = losses.load(ordering: .relaxed)
            #expect(lost == 0)
            try await lease.release()
        }
    }
}
