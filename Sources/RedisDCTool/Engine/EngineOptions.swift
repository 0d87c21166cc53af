// The options that the engine's commands share, and a coordinator made from them.
import ArgumentParser
import CommandLineTool
import CoordinationBase
import Hiredis
import RedisDC

/// The global options and the namespace.
struct EngineOptions: ParsableArguments {
    @OptionGroup var global: GlobalOptions

    @OptionGroup private var place: NamespaceOptions

    /// The maximum time until the session has started, so that a user does not wait indefinitely
    /// for an error.
    private static let startTimeout = Duration.seconds(5)

    /// Runs `body` with a coordinator that only reads. It starts no session and creates no
    /// namespace.
    func withObserver(_ body: (Coordinator) async throws -> Void) async throws {
        try await global.withRedis { redis in
            var configuration = CoordinatorConfiguration()
            configuration.partitions = try await agreedPartitions(redis)
            try await body(Coordinator(redis: redis, namespace: namespace, configuration: configuration))
        }
    }

    /// Runs `body` with a coordinator whose session has started, and ends the session afterwards.
    ///
    /// - Parameter node: the name of this process in `inspect`, after its host and process id.
    func withSession(
        ttl: Duration = .seconds(15), node: String = "redisdc", _ body: (Coordinator) async throws -> Void
    ) async throws {
        try await global.withRedis { redis in
            var configuration = CoordinatorConfiguration()
            configuration.ttl = ttl
            configuration.partitions = try await agreedPartitions(redis)
            configuration.callTimeout = Self.startTimeout
            configuration.nodeName = node
            let coordinator = try Coordinator(redis: redis, namespace: namespace, configuration: configuration)
            let events = coordinator.events()
            // A task of its own, so that an interrupted command still releases what it holds.
            let running = Task { await coordinator.run() }
            let result: Result<Void, any Error>
            do {
                try await untilSessionStarts(events)
                result = .success(try await body(coordinator))
            } catch {
                result = .failure(error)
            }
            running.cancel()
            await running.value
            try result.get()
        }
    }

    var namespace: String { place.namespace }

    /// The namespace option as it would be typed, with a leading space; empty for the default
    /// namespace.
    var namespaceOption: String { namespace == "default" ? "" : " --namespace \(namespace)" }

    private func agreedPartitions(_ redis: RedisClient) async throws -> Int {
        let keys = EngineKeys(Namespace(namespace, partitions: 1))
        return try await place.agreedPartitions(storedAt: keys.state(partition: 0), redis)
    }

    private func untilSessionStarts(_ events: AsyncStream<CoordinatorEvent>) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await event in events {
                    switch event {
                    case .sessionStarted: return
                    case .sessionRefused(let error): throw error
                    default: continue
                    }
                }
                throw RedisDCError(.cancelled, "interrupted")
            }
            group.addTask {
                try? await Task.sleep(for: Self.startTimeout)
                if Task.isCancelled { throw RedisDCError(.cancelled, "interrupted") }
                throw Failure(
                    .unavailable,
                    "Redis is reachable, but no session has started within 5 s; run `redisdc doctor` to find the cause")
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }
}
