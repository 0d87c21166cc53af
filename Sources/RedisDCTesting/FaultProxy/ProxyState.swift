import NIOCore
import NIOPosix

/// The faults of a proxy, and the connections to which they apply.
///
/// The state and all sockets are confined to one event loop, so a fault applies to every byte that
/// is read or written after it is set.
final class ProxyState {
    let loop: any EventLoop
    let counterStore: ProxyCounterStore
    private var target: FaultProxy.Target
    private var links: [ObjectIdentifier: ProxyLink] = [:]

    private var delayToServer = TimeAmount.zero
    private var delayToClient = TimeAmount.zero
    private var stalled: FaultProxy.Direction = []
    /// The introductions of the clients that are stalled, each with its place in what they send first.
    private var stalledClients: Set<FaultProxy.Introduction> = []
    private var isRefusing = false
    private var isStopped = false
    private(set) var isSwallowing = false
    /// For each reply to drop, the bytes that its request contains, in the order of the calls.
    var pendingDrops: [[UInt8]] = []
    /// For each reply to cut, the number of bytes to forward, in the order of the calls.
    var pendingCuts: [Int] = []

    init(loop: any EventLoop, target: FaultProxy.Target, counterStore: ProxyCounterStore) {
        self.loop = loop
        self.target = target
        self.counterStore = counterStore
    }

    func delay(_ amount: TimeAmount, _ direction: FaultProxy.Direction) {
        if direction.contains(.toServer) { self.delayToServer = amount }
        if direction.contains(.toClient) { self.delayToClient = amount }
        self.applyToAll()
    }

    func stall(_ direction: FaultProxy.Direction, _ isStalled: Bool) {
        if isStalled { self.stalled.formUnion(direction) } else { self.stalled.subtract(direction) }
        self.applyToAll()
    }

    /// Stalls, in both directions, the connections of clients that introduce themselves in this way.
    func stallClients(_ introduction: FaultProxy.Introduction) {
        self.stalledClients.insert(introduction)
        self.applyToAll()
    }

    /// Ends a stall of clients, and cuts their connections.
    func unstallClients(_ introduction: FaultProxy.Introduction) {
        self.stalledClients.remove(introduction)
        for link in self.links.values where introduction.matches(link.firstBytes) == true {
            link.cut(withReset: true)
        }
        self.applyToAll()
    }

    func redirect(to target: FaultProxy.Target) { self.target = target }

    func silenceOpenConnections() { for link in self.links.values { link.isSilent = true } }

    func swallow(_ isSwallowing: Bool) {
        self.isSwallowing = isSwallowing
        if isSwallowing { return }
        for link in self.links.values where link.hasLostReplies { link.cut(withReset: false) }
    }

    func refuse(_ isRefusing: Bool) { self.isRefusing = isRefusing }

    func heal() {
        self.pendingDrops = []
        self.pendingCuts = []
        self.swallow(false)
        self.isRefusing = false
        self.stalledClients = []
        self.delay(.zero, .both)
        self.stall(.both, false)
    }

    func cutAll(withReset: Bool) {
        for link in self.links.values { link.cut(withReset: withReset) }
    }

    /// Closes all connections, and those that the listener has accepted but not yet handed over.
    func stop() {
        self.isStopped = true
        self.cutAll(withReset: false)
    }

    private func applyToAll() { self.links.values.forEach(self.apply) }

    func apply(to link: ProxyLink) {
        link.toServer.delay = self.delayToServer
        link.toClient.delay = self.delayToClient
        // A client that has not introduced itself yet is held back until it has.
        let isStalled = self.stalledClients.contains { $0.matches(link.firstBytes) ?? true }
        link.toServer.isStalled = self.stalled.contains(.toServer) || isStalled
        link.toClient.isStalled = self.stalled.contains(.toClient) || isStalled
    }
}

// MARK: - Connections

extension ProxyState {
    /// Connects a new client to the server, unless connections are refused.
    ///
    /// - Returns: the link of the connection, or nil if the caller must close it.
    func accepted(_ client: any Channel) -> ProxyLink? {
        if self.isStopped { return nil }
        if self.isRefusing {
            self.counterStore.update { $0.refusedConnections += 1 }
            return nil
        }
        let link = ProxyLink(client: client, state: self)
        self.links[ObjectIdentifier(link)] = link
        self.apply(to: link)
        self.counterStore.update {
            $0.acceptedConnections += 1
            $0.openConnections += 1
        }
        self.connect().assumeIsolated().whenComplete { result in
            switch result {
            case .success(let server):
                do {
                    // No bytes are lost before the handler is added, because the channel reads only on request.
                    try server.pipeline.syncOperations.addHandler(ProxyHandler(link: link, side: .server))
                    link.connected(to: server)
                } catch {
                    // The server has already closed the connection.
                    link.couldNotConnect()
                }
            case .failure: link.couldNotConnect()
            }
        }
        return link
    }

    func ended(_ link: ProxyLink) {
        self.links[ObjectIdentifier(link)] = nil
        self.counterStore.update { $0.openConnections -= 1 }
    }

    private func connect() -> EventLoopFuture<any Channel> {
        let bootstrap = ClientBootstrap(group: self.loop)
            .channelOption(.autoRead, value: false)
            .channelOption(.allowRemoteHalfClosure, value: true)
        return switch self.target.address {
        case .port(let port): bootstrap.connect(host: "127.0.0.1", port: port)
        case .unixSocket(let path): bootstrap.connect(unixDomainSocketPath: path)
        }
    }
}
