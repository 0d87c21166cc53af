import Synchronization

#if ServiceLifecycleSupport
    import ServiceLifecycle
#endif

/// The `run()` of a service, which may be called once: a client, a coordinator or a post office.
package final class ServiceRun: Sendable {
    private let owner: StaticString
    private let hasRun = Atomic<Bool>(false)

    /// Whether ``run(_:drainingOnShutdown:)`` has been called.
    package var hasBegun: Bool { hasRun.load(ordering: .relaxed) }

    /// - Parameter owner: the service's type, for the message when `run` is called a second time.
    package init(_ owner: StaticString) { self.owner = owner }

    /// Runs `tasks` until the current task is cancelled or a graceful shutdown begins, then cancels
    /// them and returns when they have ended. A second call is a programming error and traps.
    ///
    /// - Parameter drain: called before the tasks are cancelled when the shutdown is graceful, not
    ///   on cancellation.
    package func run(
        _ tasks: [@Sendable () async -> Void], drainingOnShutdown drain: () async -> Void = {}
    ) async {
        precondition(!hasRun.exchange(true, ordering: .relaxed), "\(owner).run() is called once")
        await withTaskGroup(of: Void.self) { group in
            for task in tasks { group.addTask { await task() } }
            await Self.untilShutdown()
            if !Task.isCancelled { await drain() }
            group.cancelAll()
        }
    }

    private static func untilShutdown() async {
        #if ServiceLifecycleSupport
            try? await gracefulShutdown()
        #else
            while !Task.isCancelled { try? await Task.sleep(for: .seconds(3600)) }
        #endif
    }
}
