import NIOCore
import NIOPosix

/// Gives any Redis an event loop, for implementations of the public protocol. Each posted script
/// costs a task.
struct EventLoopAdapter: EventLoopRedis, ForwardingRedis {
    package let target: any Redis
    private let eventLoop: any EventLoop

    init(_ target: any Redis, eventLoop: any EventLoop = MultiThreadedEventLoopGroup.singleton.next()) {
        self.target = target
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
                result = .success(try await target.script(script, keys: keys, arguments: arguments, timeout: timeout))
            } catch {
                result = .failure(error)
            }
            execute { completion(result) }
        }
    }

    func sendFirst(
        for key: String?, _ body: @escaping @Sendable (NewConnection) async -> Void
    ) -> (@Sendable () -> Void)? { nil }

    /// The subscription may belong to another event loop, so the caller reads each event on its own
    /// executor.
    func drain(
        _ subscription: Subscription, isolation: isolated (any Actor)?,
        into sink: @escaping @Sendable (SubscriptionEvent) -> Void
    ) async throws(RedisError) {
        while let event = try await subscription.next() { sink(event) }
    }
}
