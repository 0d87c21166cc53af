import NIOCore
import NIOPosix

/// The faults of a proxy and the connections they apply to.
///
/// All of it, the sockets too, belongs to one event loop: a fault that has been set there holds for every byte that is
/// read or written later, with nothing in between.
final class ProxySwitchboard {
    let loop: any EventLoop
    let ledger: ProxyLedger
    private let target: FaultProxy.Target
    private var links: [ObjectIdentifier: ProxyLink] = [:]

    private var delayToServer = TimeAmount.zero
    private var delayToClient = TimeAmount.zero
    private var stalled: FaultProxy.Direction = []
    private var isRefusing = false
    private var isStopped = false
    private(set) var isSwallowing = false
    /// What the requests contain whose replies are to be dropped, in the order of the calls.
    var drops: [[UInt8]] = []
    /// Where the next replies are to be cut.
    var cuts: [Int] = []

    init(loop: any EventLoop, target: FaultProxy.Target, ledger: ProxyLedger) {
        self.loop = loop
        self.target = target
        self.ledger = ledger
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

    func swallow(_ isSwallowing: Bool) { self.isSwallowing = isSwallowing }

    func refuse(_ isRefusing: Bool) { self.isRefusing = isRefusing }

    func heal() {
        self.drops = []
        self.cuts = []
        self.isSwallowing = false
        self.isRefusing = false
        self.delay(.zero, .both)
        self.stall(.both, false)
    }

    func cutAll(withReset: Bool) {
        self.links.values.forEach { $0.cut(withReset: withReset) }
    }

    /// Ends what is open and closes at once what was accepted but has not come here yet.
    func stop() {
        self.isStopped = true
        self.cutAll(withReset: false)
    }

    private func applyToAll() { self.links.values.forEach(self.apply) }

    private func apply(to link: ProxyLink) {
        link.toServer.delay = self.delayToServer
        link.toClient.delay = self.delayToClient
        link.toServer.isStalled = self.stalled.contains(.toServer)
        link.toClient.isStalled = self.stalled.contains(.toClient)
    }
}

// MARK: - Connections

extension ProxySwitchboard {
    /// A client has connected: connects to the server, unless connections are refused.
    ///
    /// - Returns: the link that takes what the client sends, or nil if the connection is to be closed.
    func accepted(_ client: any Channel) -> ProxyLink? {
        if self.isStopped { return nil }
        if self.isRefusing {
            self.ledger.count { $0.refusedConnections += 1 }
            return nil
        }
        let link = ProxyLink(client: client, board: self)
        self.links[ObjectIdentifier(link)] = link
        self.apply(to: link)
        self.ledger.count {
            $0.acceptedConnections += 1
            $0.openConnections += 1
        }
        self.connect().assumeIsolated().whenComplete { result in
            switch result {
            case .success(let server):
                do {
                    // Nothing is read before the handler is there, because reading is by request only.
                    try server.pipeline.syncOperations.addHandler(ProxyHandler(link: link, side: .server))
                    link.connected(to: server)
                } catch {
                    // The server has closed the connection already.
                    link.couldNotConnect()
                }
            case .failure: link.couldNotConnect()
            }
        }
        return link
    }

    func ended(_ link: ProxyLink) {
        self.links[ObjectIdentifier(link)] = nil
        self.ledger.count { $0.openConnections -= 1 }
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
