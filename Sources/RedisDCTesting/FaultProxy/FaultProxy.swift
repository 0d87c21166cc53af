import NIOCore
import NIOPosix

/// A TCP proxy on 127.0.0.1 that loses, delays and cuts what goes through it, when the test says so.
///
/// ```swift
/// try await withFaultProxy(to: .port(redis.port)) { proxy in
///     let client = try RedisClient("redis://127.0.0.1:\(proxy.port)")
///     try await proxy.dropNextReply(matching: "LPUSH")
///     // The next LPUSH runs on the server, and the client sees its connection end without the answer.
///     try await proxy.waitUntil { $0.droppedReplies == 1 }
/// }
/// ```
///
/// **What it guarantees**
/// - Without a fault, bytes pass unchanged and in order, and so do half-closes, closes and resets.
/// - A fault holds for all connections, those that are open and those to come, from the moment when the call returns:
///   no byte that arrives later escapes it.
/// - It keeps at most about a megabyte for each direction of a connection, and what the kernel had when a peer closed;
///   beyond that the sender has to wait.
///
/// **What it does not**
/// - It knows bytes, not commands. A fault that is about a request or a reply says exactly which bytes it means.
/// - A server that cannot be reached looks like one that accepts a connection and closes it at once.
///
/// Methods may be called from any task. None of them waits for a peer, but for ``stop()`` and
/// ``waitUntil(within:_:)``. After ``stop()`` the others do nothing.
public final class FaultProxy: Sendable {
    /// Where a proxy forwards to.
    public struct Target: Sendable {
        enum Address {
            case port(Int)
            case unixSocket(String)
        }

        let address: Address

        /// A TCP port on 127.0.0.1.
        public static func port(_ port: Int) -> Target { Target(address: .port(port)) }

        /// The path of a Unix socket.
        public static func unixSocket(_ path: String) -> Target { Target(address: .unixSocket(path)) }
    }

    /// A direction that bytes go in, or both.
    public struct Direction: OptionSet, Sendable {
        public let rawValue: Int

        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// From clients to the server: requests.
        public static let toServer = Direction(rawValue: 1)
        /// From the server to clients: replies.
        public static let toClient = Direction(rawValue: 2)
        /// Both directions.
        public static let both: Direction = [.toServer, .toClient]
    }

    /// The port on 127.0.0.1 that clients connect to.
    public let port: Int

    private let loop: any EventLoop
    private let listener: any Channel
    private let board: NIOLoopBound<ProxySwitchboard>
    private let ledger: ProxyLedger

    private init(
        port: Int, loop: any EventLoop, listener: any Channel, board: NIOLoopBound<ProxySwitchboard>,
        ledger: ProxyLedger
    ) {
        self.port = port
        self.loop = loop
        self.listener = listener
        self.board = board
        self.ledger = ledger
    }

    deinit {
        self.listener.close(promise: nil)
        self.loop.execute { [board] in board.value.stop() }
    }

    /// Starts a proxy on a free port. ``stop()`` it; ``withFaultProxy(to:body:)`` does so by itself.
    ///
    /// The server need not be there yet: it is connected to once for each client's connection.
    public static func start(to target: Target) async throws -> FaultProxy {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let ledger = ProxyLedger()
        let board = try await loop.submit {
            NIOLoopBound(ProxySwitchboard(loop: loop, target: target, ledger: ledger), eventLoop: loop)
        }.get()
        let listener = try await ServerBootstrap(group: loop)
            .serverChannelOption(.backlog, value: 256)
            .childChannelOption(.autoRead, value: false)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ProxyEntryHandler(board: board.value))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        return FaultProxy(
            port: listener.localAddress?.port ?? 0, loop: loop, listener: listener, board: board, ledger: ledger)
    }

    /// Closes the port and all connections, and returns when they are closed. Calling it again does nothing.
    ///
    /// Waits that are under way throw ``FaultProxyError`` with the code ``FaultProxyError/Code/stopped``.
    public func stop() async {
        try? await self.listener.close()
        self.ledger.stop()
        await self.onLoop { $0.stop() }
        await self.ledger.waitUntilAllClosed()
    }

    /// What has happened so far.
    public var counters: Counters { self.ledger.counters }

    /// Waits until the counters satisfy a condition; it is asked now and at each change.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait, a minute by default.
    ///   - condition: a quick question, such as `{ $0.droppedReplies == 1 }`. It must not use the proxy.
    /// - Throws: ``FaultProxyError`` with the code ``FaultProxyError/Code/timedOut`` or
    ///   ``FaultProxyError/Code/stopped``; `CancellationError`.
    public func waitUntil(
        within timeout: Duration = .seconds(60), _ condition: @escaping @Sendable (Counters) -> Bool
    ) async throws {
        try await self.ledger.wait(within: timeout, on: self.loop, until: condition)
    }

    /// Runs a body on the event loop, where all state is.
    func onLoop(_ body: @escaping @Sendable (ProxySwitchboard) -> Void) async {
        // It fails only after the event loop has been shut down, and with that everything else.
        try? await self.loop.submit { [board] in body(board.value) }.get()
    }
}

/// Runs a body with a proxy, then stops the proxy, also when the body throws.
///
/// - Parameter target: where the proxy forwards to.
/// - Throws: what the body throws, and what ``FaultProxy/start(to:)`` does.
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
