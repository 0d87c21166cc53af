import NIOCore

/// A Redis whose replies arrive on a known executor, for the engine and the mailboxes.
///
/// An actor on `serialExecutor` receives replies and wake-ups without changing threads. The public
/// protocol does without this, so that other implementations of ``Redis`` need no executor: see
/// ``Redis/onEventLoop()``.
package protocol EventLoopRedis: Redis {
    /// The executor on which replies arrive.
    var serialExecutor: any SerialExecutor { get }

    /// Whether the caller is on `serialExecutor`.
    var isCurrent: Bool { get }

    /// Runs `body` on `serialExecutor`: immediately when the caller is on it, otherwise as soon as
    /// possible. `body` must not block.
    func execute(_ body: @escaping @Sendable () -> Void)

    /// Why there is no connection for commands now: the error of the last attempt. `nil` when there
    /// is one, and when it is not known.
    var connectionFailure: RedisError? { get }

    /// Runs a script for a caller on `serialExecutor` and calls `completion` there, instead of
    /// suspending the caller.
    func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    )

    /// Calls `body` with each new command connection, before all other commands: no other caller has the connection
    /// until it has returned. It must return soon, at the latest when the connection has ended.
    ///
    /// In a cluster these are the connections to the master of a key's slot, and a master that takes
    /// the slot over counts as a new connection.
    ///
    /// - Parameter key: a key of the scripts that are sent; `nil` for a function that sends none and is
    ///   called for the connections to all masters.
    /// - Returns: a function that ends this; `nil` when this Redis has no command connection of its
    ///   own.
    func sendFirst(
        for key: String?, _ body: @escaping @Sendable (NewConnection) async -> Void
    ) -> (@Sendable () -> Void)?

    /// Calls `sink` with each event on `serialExecutor`, and returns when the subscription ends.
    /// The caller must be on `serialExecutor`, and `sink` must not block.
    func drain(
        _ subscription: Subscription, isolation: isolated (any Actor)?,
        into sink: @escaping @Sendable (SubscriptionEvent) -> Void
    ) async throws(RedisError)
}

extension Redis {
    /// Returns this Redis if it has an executor of its own, otherwise an adapter that gives it one.
    package func onEventLoop() -> any EventLoopRedis { self as? any EventLoopRedis ?? EventLoopAdapter(self) }
}

extension RedisClient: EventLoopRedis {
    package var serialExecutor: any SerialExecutor { eventLoop.executor }

    package var isCurrent: Bool { eventLoop.inEventLoop }

    package func execute(_ body: @escaping @Sendable () -> Void) {
        if isCurrent { body() } else { eventLoop.execute(body) }
    }

    package var connectionFailure: RedisError? { servers.connectionFailure }

    package func post(
        _ script: RedisScript, keys: [String], arguments: [RedisArgument], timeout: Duration?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        servers.post(script, keys: keys, arguments: arguments, timeout: timeout, completion: completion)
    }

    package func sendFirst(
        for key: String?, _ body: @escaping @Sendable (NewConnection) async -> Void
    ) -> (@Sendable () -> Void)? {
        let firstCallers = servers.firstCallers
        let id = firstCallers.add(slot: key.map { HashSlot.of($0) }, body)
        return { firstCallers.remove(id) }
    }

    package func drain(
        _ subscription: Subscription, isolation: isolated (any Actor)?,
        into sink: @escaping @Sendable (SubscriptionEvent) -> Void
    ) async throws(RedisError) {
        try await subscription.drain(isolation: isolation, into: sink)
    }
}
