// The families of primitives that tasks use. A new one adds its line here, and a file of its own beside this one.

/// A family of primitives: what a task does with it once.
struct Use: Sendable {
    let name: String
    let make: @Sendable (SimulatedTask) async throws -> Void

    private init(_ name: String, _ make: @escaping @Sendable (SimulatedTask) async throws -> Void) {
        (self.name, self.make) = (name, make)
    }

    static let all: [Use] = [
        Use("mutex") { try await $0.useMutex() },
        Use("pool") { try await $0.usePool() },
        Use("read-write") { try await $0.useReadWriteLock() },
        Use("several-locks") { try await $0.useSeveralLocks() },
        Use("tokens") { try await $0.useTokens() },
        Use("turnstile") { try await $0.useTurnstile() },
        Use("barrier") { try await $0.useBarrier() },
        Use("double-barrier") { try await $0.useDoubleBarrier() },
        Use("phaser") { try await $0.usePhaser() },
        Use("exchanger") { try await $0.useExchanger() },
        Use("latch") { try await $0.useLatch() },
        Use("condition") { try await $0.useCondition() },
        Use("light-switch") { try await $0.useLightSwitch() },
        Use("buffer") { try await $0.useBuffer() },
        Use("rate-limit") { try await $0.useRateLimiter() },
        Use("cohort") { try await $0.useCohort() },
        Use("administration") { try await $0.useAdministration() },
    ]
}
