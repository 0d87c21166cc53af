import NIOCore
import NIOPosix

/// A TCP proxy on 127.0.0.1 that drops, delays and cuts its traffic on command.
///
/// ```swift
/// try await withLocalRedis { redis in
///     try await withFaultProxy(to: .port(redis.port)) { proxy in
///         try await withRedisClient(url: "redis://127.0.0.1:\(proxy.port)") { client in
///             await proxy.dropNextReply(matching: "LPUSH")
///             // The command runs on the server; the connection closes before the reply arrives.
///             let push = Task { try await client.send("LPUSH", "list", "element") }
///             try await proxy.waitUntil { $0.droppedReplies == 1 }
///             await #expect(throws: RedisError.self) { try await push.value }
///         }
///     }
/// }
/// ```
///
/// **Guarantees**
/// - Without a fault, the proxy forwards bytes unchanged and in order, and forwards half-closes,
///   closes and resets.
/// - A fault applies to all connections, open and future, from the moment the call returns: no
///   byte that arrives later escapes it.
/// - The proxy buffers at most about one megabyte per direction of a connection, plus the bytes
///   that the kernel held when a peer closed. At that limit it stops reading, so the sender has to
///   wait.
///
/// **Limits**
/// - The proxy sees bytes, not commands. The documentation of each fault that concerns a request or
///   a reply states exactly which bytes it affects.
/// - An unreachable server looks to the client like a server that accepts a connection and closes
///   it immediately.
///
/// All methods may be called from any task. Only two of them may have to wait for the clients or
/// the server: ``stop()``, until all connections are closed, and ``waitUntil(within:_:)``. After
/// ``stop()``, the fault methods have no effect.
public final class FaultProxy: Sendable {
    /// The server address to which a proxy forwards connections.
    public struct Target: Sendable {
        enum Address {
            case port(Int)
            case unixSocket(String)
        }

        let address: Address

        /// Returns the target for a TCP port on 127.0.0.1.
        public static func port(_ port: Int) -> Target { Target(address: .port(port)) }

        /// Returns the target for the Unix socket at a path.
        public static func unixSocket(_ path: String) -> Target { Target(address: .unixSocket(path)) }
    }

    /// The direction of traffic that a fault affects: one direction or both.
    public struct Direction: OptionSet, Sendable {
        /// The bits of the directions in the set.
        public let rawValue: Int

        /// Creates a set of directions from its bits.
        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// Requests: from the clients to the server.
        public static let toServer = Direction(rawValue: 1)
        /// Replies: from the server to the clients.
        public static let toClient = Direction(rawValue: 2)
        /// Both directions.
        public static let both: Direction = [.toServer, .toClient]
    }

    /// The port on 127.0.0.1 to which clients connect.
    public let port: Int

    private let loop: any EventLoop
    private let listener: any Channel
    private let state: NIOLoopBound<ProxyState>
    private let counterStore: ProxyCounterStore

    private init(
        port: Int, loop: any EventLoop, listener: any Channel, state: NIOLoopBound<ProxyState>,
        counterStore: ProxyCounterStore
    ) {
        self.port = port
        self.loop = loop
        self.listener = listener
        self.state = state
        self.counterStore = counterStore
    }

    deinit {
        self.listener.close(promise: nil)
        self.loop.execute { [state] in state.value.stop() }
    }

    /// Starts a proxy on a free port of 127.0.0.1.
    ///
    /// Call ``stop()`` when the proxy is no longer needed, or use ``withFaultProxy(to:body:)``,
    /// which does. A proxy that is released without `stop()` closes its port and its connections.
    ///
    /// The server does not have to be running: the proxy connects to it once for each client
    /// connection.
    ///
    /// - Parameter target: the server to which the proxy forwards connections.
    /// - Throws: the error of SwiftNIO if the proxy cannot listen on a port.
    public static func start(to target: Target) async throws -> FaultProxy {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let counterStore = ProxyCounterStore()
        let state = try await loop.submit {
            NIOLoopBound(ProxyState(loop: loop, target: target, counterStore: counterStore), eventLoop: loop)
        }.get()
        let listener = try await ServerBootstrap(group: loop)
            .serverChannelOption(.backlog, value: 256)
            .childChannelOption(.autoRead, value: false)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ProxyEntryHandler(state: state.value))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        return FaultProxy(
            port: listener.localAddress?.port ?? 0, loop: loop, listener: listener, state: state,
            counterStore: counterStore)
    }

    /// Closes the port and all connections, and returns when they are closed.
    ///
    /// Pending calls of ``waitUntil(within:_:)`` throw ``FaultProxyError`` with the code
    /// ``FaultProxyError/Code/stopped``. Cancelling the task does not shorten the wait. A second
    /// call has no effect.
    public func stop() async {
        try? await self.listener.close()
        self.counterStore.stop()
        await self.onLoop { $0.stop() }
        await self.counterStore.waitUntilAllClosed()
    }

    /// The current values of the proxy's counters.
    public var counters: Counters { self.counterStore.counters }

    /// Waits until the counters satisfy a condition.
    ///
    /// The condition is evaluated immediately and after each change of a counter.
    ///
    /// - Parameters:
    ///   - timeout: the maximum time to wait, more than 0; one minute by default.
    ///     More than 292 years is the same as no limit.
    ///   - condition: a short, non-blocking function such as `{ $0.droppedReplies == 1 }`. It must
    ///     not use the proxy.
    /// - Throws: ``FaultProxyError`` with the code ``FaultProxyError/Code/timedOut`` or
    ///   ``FaultProxyError/Code/stopped``; `CancellationError` if the task is cancelled.
    public func waitUntil(
        within timeout: Duration = .seconds(60), _ condition: @escaping @Sendable (Counters) -> Bool
    ) async throws {
        try await self.counterStore.wait(within: timeout, on: self.loop, until: condition)
    }

    /// Runs a body on the event loop that owns the state.
    func onLoop(_ body: @escaping @Sendable (ProxyState) -> Void) async {
        // Fails only after the event loop has shut down; the proxy cannot work then.
        try? await self.loop.submit { [state] in body(state.value) }.get()
    }
}

/// Runs a body with a proxy, and stops the proxy when the body returns or throws.
///
/// - Parameters:
///   - target: the server to which the proxy forwards connections.
///   - body: the code that uses the proxy. The proxy is stopped when it ends.
/// - Returns: the result of the body.
/// - Throws: the errors of the body and of ``FaultProxy/start(to:)``.
public func withFaultProxy<R>(
    to target: FaultProxy.Target, body: (FaultProxy) async throws -> R
) async throws -> R {
    let proxy = try await FaultProxy.start(to: target)
    do {
        let result = try await body(proxy)
        await proxy.stop()
        return result
    } catch {
        await proxy.stop()
        throw error
    }
}
