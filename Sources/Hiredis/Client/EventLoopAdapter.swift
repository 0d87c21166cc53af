import NIOCore
import NIOPosix

/// Gives any Redis an event loop, for implementations of the public protocol. Each posted script
/// costs a task.
struct EventLoopAdapter: EventLoopRedis {
    private let redis: any Redis
    private let eventLoop: any EventLoop

    init(_ redis: any Redis, eventLoop: any EventLoop = MultiThreadedEventLoopGroup.singleton.next()) {
        self.redis = redis
        self.eventLoop = eventLoop
    }

    var serialExecutor: any SerialExecutor { eventLoop.executor }

    var isCurrent: Bool { eventLoop.inEventLoop }

    func execute(_ body: @escaping @Sendable () -> Void) {
        if isCurrent { body() } else { eventLoop.execute(body) }
    }

    /// Not known.
    var connectionFailure: RedisError? { nil }

    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        Task {
            let result: Result<RESPValue, RedisError>
            do throws(RedisError) {
                result = .success(try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout))
            } catch {
                result = .failure(error)
            }
            execute { completion(result) }
        }
    }

    func sendFirst(
        for key: String?, _ make: @escaping @Sendable () async -> [FirstScript]
    ) -> (@Sendable () -> Void)? { nil }

    /// The subscription may belong to another event loop, so the caller reads each event on its own
    /// executor.
    func drain(
        _ subscription: Subscription, isolation: isolated (any Actor)?,
        into sink: @escaping @Sendable (SubscriptionEvent) -> Void
    ) async throws(RedisError) {
        while let event = try await subscription.next() { sink(event) }
    }

    // MARK: Passed on

    func send(
        _ command: RedisCommand, timeout: Duration?, settle: (@Sendable (RESPValue) -> Void)?
    ) async throws(RedisError) -> RESPValue { try await redis.send(command, timeout: timeout, settle: settle) }

    func pipeline(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await redis.pipeline(commands, timeout: timeout)
    }

    func withDedicatedConnection<Value>(
        timeout: Duration?, _ body: (DedicatedConnection) async throws -> Value
    ) async throws -> Value { try await redis.withDedicatedConnection(timeout: timeout, body) }

    func transaction(_ commands: [RedisCommand], timeout: Duration?) async throws(RedisError) -> [RESPValue] {
        try await redis.transaction(commands, timeout: timeout)
    }

    func script(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?
    ) async throws(RedisError) -> RESPValue {
        try await redis.script(script, keys: keys, arguments: arguments, timeout: timeout)
    }

    func block(
        _ command: BlockingCommand, timeout: Duration?, giveBack: @escaping @Sendable (RESPValue) async -> Void
    ) async throws(RedisError) -> RESPValue? { try await redis.block(command, timeout: timeout, giveBack: giveBack) }

    func publish(_ payload: RedisArgument, to channel: SubscriptionTopic) async throws(RedisError) -> Int {
        try await redis.publish(payload, to: channel)
    }

    func subscribe(
        to topics: [SubscriptionTopic], buffer: SubscriptionBuffer
    ) async throws(RedisError) -> Subscription { try await redis.subscribe(to: topics, buffer: buffer) }
}
