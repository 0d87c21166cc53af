// What the commands of the engine share: a namespace, and a coordinator in it.
import ArgumentParser
import Hiredis
import RedisDC

struct EngineOptions: ParsableArguments {
    @OptionGroup var global: GlobalOptions

    @Option(help: "Sets an application's resources apart from others' in the same Redis.")
    var namespace = "default"

    @Option(help: "Into how many parts the namespace is divided. (default: what Redis says it has, else 1)")
    var partitions: Int?

    /// Until the session has begun, a person waits in vain.
    private static let patience = Duration.seconds(5)

    /// Runs `body` with a coordinator that only looks. It begins no session, so a namespace that is not there stays so.
    func withObserver(_ body: (Coordinator) async throws -> Void) async throws {
        try await global.withRedis { redis in
            var configuration = CoordinatorConfiguration()
            configuration.partitions = try await agreedPartitions(redis)
            try await body(Coordinator(redis: redis, namespace: namespace, configuration: configuration))
        }
    }

    /// Runs `body` with a coordinator whose session has begun, and ends the session.
    ///
    /// - Parameter node: what `inspect` shows of this process besides its host and process id.
    func withSession(
        ttl: Duration = .seconds(15), node: String = "redisdc", _ body: (Coordinator) async throws -> Void
    ) async throws {
        try await global.withRedis { redis in
            var configuration = CoordinatorConfiguration()
            configuration.ttl = ttl
            configuration.partitions = try await agreedPartitions(redis)
            configuration.callTimeout = Self.patience
            configuration.nodeName = node
            let coordinator = try Coordinator(redis: redis, namespace: namespace, configuration: configuration)
            let events = coordinator.events()
            // A task of its own: what an interrupted command holds is still given back.
            let running = Task { await coordinator.run() }
            let result: Result<Void, any Error>
            do {
                try await untilSessionBegins(events)
                result = .success(try await body(coordinator))
            } catch {
                result = .failure(error)
            }
            running.cancel()
            await running.value
            try result.get()
        }
    }

    /// How to write the options in an advice, with a space before them.
    var words: String { namespace == "default" ? "" : " --namespace \(namespace)" }

    /// What Redis says, which whoever only looks would not be told otherwise.
    private func agreedPartitions(_ redis: RedisClient) async throws -> Int {
        let reply = try await redis.send("HGET", .string("rdc:{\(namespace):0}:book"), "partitions")
        let found = reply.string.flatMap { Int($0) }
        if let found, let partitions, found != partitions {
            throw Failure(
                .badData, "namespace \"\(namespace)\" has \(found) partitions, but --partitions says \(partitions)")
        }
        return partitions ?? found ?? 1
    }

    private func untilSessionBegins(_ events: AsyncStream<CoordinatorEvent>) async throws {
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
                try? await Task.sleep(for: Self.patience)
                if Task.isCancelled { throw RedisDCError(.cancelled, "interrupted") }
                throw Failure(
                    .unavailable, "Redis is there, but has let no session begin within 5 s; try: redisdc doctor")
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }
}

/// How long to wait for something.
struct TimeoutOption: ParsableArguments {
    @Option(help: "Wait at most so many seconds; decimals allowed, 0 tries once. (default: for ever)")
    var timeout: Double?

    var duration: Duration? { timeout.map { .seconds($0) } }

    func validate() throws {
        if let timeout, !(timeout >= 0 && timeout < 1e9) {
            throw ValidationError("--timeout is a number of seconds, 0 or more")
        }
    }
}
