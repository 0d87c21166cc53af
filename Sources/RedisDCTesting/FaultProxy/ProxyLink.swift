import NIOCore

/// A proxied connection: a client socket, a server socket, and the two lanes between them.
///
/// A link is confined to its event loop. The handlers of its two channels retain it.
final class ProxyLink {
    /// A peer of the proxy.
    enum Side {
        case client
        case server
    }

    let toServer: ProxyLane
    let toClient: ProxyLane
    private let client: any Channel
    private var server: (any Channel)?
    private let state: ProxyState

    /// Whether all further bytes are discarded, in both directions.
    var isSilent = false
    private var isCut = false
    private var hasEnded = false
    /// Whether all further bytes from the server are discarded.
    private var haveRepliesEnded = false
    /// Whether the request whose reply will be dropped has been forwarded.
    private var isDropping = false
    /// Whether replies were swallowed. The client would take the next reply for one of them.
    private(set) var hasLostReplies = false
    /// The number of bytes that the client still receives before the cut; nil without a cut.
    private var bytesBeforeCut: Int?
    /// The last forwarded bytes, to find a request that is split over two reads.
    private var requestTail: [UInt8] = []
    /// The first bytes of the client, at most ``FaultProxy/Introduction/maxEnd``.
    private(set) var firstBytes: [UInt8] = []
    private var halfClosed: Set<Side> = []
    private var gone: Set<Side> = []

    init(client: any Channel, state: ProxyState) {
        self.client = client
        self.state = state
        self.toServer = ProxyLane(loop: client.eventLoop)
        self.toClient = ProxyLane(loop: client.eventLoop)
        let counterStore = state.counterStore
        self.toServer.willWrite = { self.inspectRequest($0) }
        self.toServer.didWrite = { count in counterStore.update { $0.bytesToServer += count } }
        self.toClient.didWrite = { count in counterStore.update { $0.bytesToClient += count } }
        for lane in [self.toServer, self.toClient] {
            lane.didKeep = { count in counterStore.update { $0.keptBytes += count } }
        }
        self.toServer.didHalfClose = { self.didHalfClose(.client) }
        self.toClient.didHalfClose = { self.didHalfClose(.server) }
    }

    /// Starts forwarding after the connection to the server is established.
    func connected(to server: any Channel) {
        self.server = server
        // If the channel is closed here, its handler has not become active and is not called.
        server.closeFuture.assumeIsolated().whenComplete { _ in self.closed(.server, byReset: false) }
        if self.isCut { return server.close(promise: nil) }
        self.toServer.start(from: self.client, to: server)
        self.toClient.start(from: server, to: self.client)
    }

    /// Closes the client's connection because the server is unreachable.
    func couldNotConnect() {
        self.client.close(promise: nil)
        self.gone.insert(.server)
        self.endIfBothGone()
    }

    /// Queues bytes for the other side.
    func received(_ bytes: ByteBuffer, from side: Side) {
        if self.isSilent { return self.state.counterStore.update { $0.swallowedBytes += bytes.readableBytes } }
        switch side {
        case .client:
            self.keepFirstBytes(of: bytes)
            self.toServer.enqueue(.bytes(bytes))
        case .server: self.receivedReply(bytes)
        }
    }

    private func keepFirstBytes(of bytes: ByteBuffer) {
        let missing = FaultProxy.Introduction.maxEnd - self.firstBytes.count
        guard missing > 0 else { return }
        self.firstBytes += bytes.readableBytesView.prefix(missing)
        // Before the bytes are queued, because they may have to be stalled.
        self.state.apply(to: self)
    }

    /// Queues a half-close for the other side: this side has finished sending.
    func inputClosed(_ side: Side) {
        self.lane(from: side).enqueue(.halfClose)
    }

    /// Queues a close for the other side, behind the bytes that this side sent.
    func closed(_ side: Side, byReset: Bool) {
        guard self.gone.insert(side).inserted else { return }
        self.lane(to: side).discard()
        self.lane(from: side).enqueue(byReset ? .reset : .close)
        self.endIfBothGone()
    }

    /// Closes both sockets immediately and discards the queues.
    func cut(withReset: Bool) {
        self.isCut = true
        self.toServer.discard()
        self.toClient.discard()
        for channel in [self.client, self.server].compactMap({ $0 }) {
            if withReset { channel.closeWithReset() } else { channel.close(promise: nil) }
        }
    }

    func lane(from side: Side) -> ProxyLane { side == .client ? self.toServer : self.toClient }
    private func lane(to side: Side) -> ProxyLane { side == .client ? self.toClient : self.toServer }

    private func didHalfClose(_ side: Side) {
        self.halfClosed.insert(side)
        if self.halfClosed.count == 2 { self.cut(withReset: false) }
    }

    private func endIfBothGone() {
        // Closing one side can close the other side before it returns, so this can run twice.
        guard self.gone.count == 2, !self.hasEnded else { return }
        self.hasEnded = true
        self.toServer.finish()
        self.toClient.finish()
        self.state.ended(self)
    }
}

// MARK: - Faults

extension ProxyLink {
    /// Looks for a request whose reply will be dropped.
    ///
    /// It runs when the request is written to the server, because a stall or a delay can hold it
    /// back until then.
    private func inspectRequest(_ bytes: ByteBuffer) {
        guard !self.isDropping, let longest = self.state.pendingDrops.map(\.count).max() else {
            self.requestTail = []
            return
        }
        let seen = self.requestTail + bytes.readableBytesView
        if let index = self.state.pendingDrops.firstIndex(where: { seen.containsRun($0) }) {
            self.state.pendingDrops.remove(at: index)
            self.isDropping = true
            self.requestTail = []
        } else {
            self.requestTail = Array(seen.suffix(max(longest - 1, 0)))
        }
    }

    private func receivedReply(_ bytes: ByteBuffer) {
        if self.haveRepliesEnded {
            return
        } else if self.isDropping {
            self.endReplies { $0.droppedReplies += 1 }
        } else if self.state.isSwallowing {
            self.hasLostReplies = true
            self.state.counterStore.update { $0.swallowedBytes += bytes.readableBytes }
        } else {
            self.forwardReply(bytes)
        }
    }

    private func forwardReply(_ bytes: ByteBuffer) {
        if self.bytesBeforeCut == nil, !self.state.pendingCuts.isEmpty {
            self.bytesBeforeCut = self.state.pendingCuts.removeFirst()
        }
        guard let allowed = self.bytesBeforeCut else { return self.toClient.enqueue(.bytes(bytes)) }

        let part = bytes.getSlice(at: bytes.readerIndex, length: min(allowed, bytes.readableBytes)) ?? ByteBuffer()
        if part.readableBytes > 0 { self.toClient.enqueue(.bytes(part)) }
        self.bytesBeforeCut = allowed - part.readableBytes
        guard self.bytesBeforeCut == 0 else { return }
        self.endReplies { $0.cutReplies += 1 }
    }

    /// Closes the server's side immediately, and the client's side after its queue is written.
    private func endReplies(_ count: (inout FaultProxy.Counters) -> Void) {
        self.haveRepliesEnded = true
        // Counted before the client can observe the close.
        self.state.counterStore.update(count)
        self.server?.close(promise: nil)
    }
}

extension Array where Element == UInt8 {
    /// Returns whether the array contains a contiguous run of bytes. Every array contains the empty
    /// run.
    func containsRun(_ run: [UInt8]) -> Bool {
        if run.isEmpty { return true }
        guard run.count <= self.count else { return false }
        return (0...(self.count - run.count)).contains { self[$0...].starts(with: run) }
    }
}
