// The options that the engine's commands share, and a coordinator made from them.
import ArgumentParser
import CommandLineTool
import CoordinationBase
import Hiredis
import RedisDC

/// The namespace and its partitions, in addition to the global options.
struct EngineOptions: ParsableArguments {
    @OptionGroup var global: GlobalOptions

    @Option(help: "The namespace. It separates applications that share a Redis server.")
    var namespace = "default"

    @Option(
        help:
            "The number of partitions of the namespace, 1 to 1,024. (default: as stored in Redis, or 1 for a new namespace)"
    )
    var partitions: Int?

    /// The maximum time until the session has started, so that a user does not wait indefinitely for an error.
    private static let startTimeout = Duration.seconds(5)

    /// Runs `body` with a coordinator that only reads. It starts no session and creates no namespace.
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

    /// The namespace option as it would be typed, with a leading space; empty for the default namespace.
    var namespaceOption: String { namespace == "default" ? "" : " --namespace \(namespace)" }

    /// The number of partitions that Redis has stored, or else `--partitions`, or else 1.
    ///
    /// A coordinator without a session does not receive this number from the server, so it is read here.
    private func agreedPartitions(_ redis: RedisClient) async throws -> Int {
        let state = EngineKeys(Namespace(namespace, partitions: 1)).state(partition: 0)
        let reply = try await redis.send("HGET", .string(state), "partitions")
        let found = reply.string.flatMap { Int($0) }
        if let found, let partitions, found != partitions {
            throw Failure(
                .badData, "namespace \"\(namespace)\" has \(found) partitions, but --partitions says \(partitions)")
        }
        return partitions ?? found ?? 1
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

/// The `--timeout` option.
struct TimeoutOption: ParsableArguments {
    @Option(help: "The maximum wait in seconds, with decimals; 0 tries once. (default: no limit)")
    var timeout: Double?

    var duration: Duration? { timeout.map { .seconds($0) } }

    func validate() throws {
        if let timeout, !(timeout >= 0 && timeout < 1e9) {
            throw ValidationError("--timeout must be a number of seconds, 0 or more")
        }
    }
}
