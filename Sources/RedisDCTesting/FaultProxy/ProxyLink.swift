import NIOCore

/// One client's connection through the proxy: the two sockets and the two lanes between them.
///
/// It belongs to its event loop. The handlers of the two channels keep it alive.
final class ProxyLink {
    /// One of the two peers.
    enum Side {
        case client
        case server
    }

    let toServer: ProxyLane
    let toClient: ProxyLane
    private let client: any Channel
    private var server: (any Channel)?
    private let board: ProxySwitchboard

    private var isCut = false
    private var hasEnded = false
    /// Nothing that the server sends is passed on any more.
    private var haveRepliesEnded = false
    /// The request whose reply is to be dropped has been forwarded.
    private var isDropping = false
    /// How many bytes the client still gets before the connection is cut; nil if it is not to be.
    private var bytesBeforeCut: Int?
    /// The end of what was forwarded, for a request that is split over two reads.
    private var requestTail: [UInt8] = []
    private var halfClosed: Set<Side> = []
    private var gone: Set<Side> = []

    init(client: any Channel, board: ProxySwitchboard) {
        self.client = client
        self.board = board
        self.toServer = ProxyLane(loop: client.eventLoop)
        self.toClient = ProxyLane(loop: client.eventLoop)
        let ledger = board.ledger
        self.toServer.willWrite = { self.inspectRequest($0) }
        self.toServer.didWrite = { count in ledger.count { $0.bytesToServer += count } }
        self.toClient.didWrite = { count in ledger.count { $0.bytesToClient += count } }
        for lane in [self.toServer, self.toClient] {
            lane.didKeep = { count in ledger.count { $0.keptBytes += count } }
        }
        self.toServer.didHalfClose = { self.didHalfClose(.client) }
        self.toClient.didHalfClose = { self.didHalfClose(.server) }
    }

    /// The connection to the server is there.
    func connected(to server: any Channel) {
        self.server = server
        // A channel that is closed from here has not become active for its handler yet, which then hears of no end.
        server.closeFuture.assumeIsolated().whenComplete { _ in self.closed(.server, byReset: false) }
        if self.isCut { return server.close(promise: nil) }
        self.toServer.start(from: self.client, to: server)
        self.toClient.start(from: server, to: self.client)
    }

    /// The server cannot be reached: the client's connection ends, and with it the link.
    func couldNotConnect() {
        self.client.close(promise: nil)
        self.gone.insert(.server)
        self.endIfBothGone()
    }

    func received(_ bytes: ByteBuffer, from side: Side) {
        switch side {
        case .client: self.toServer.enqueue(.bytes(bytes))
        case .server: self.receivedReply(bytes)
        }
    }

    /// A side sends no more.
    func inputClosed(_ side: Side) {
        self.lane(from: side).enqueue(.halfClose)
    }

    /// A side's socket is closed: the other is told after all that this one had sent.
    func closed(_ side: Side, byReset: Bool) {
        guard self.gone.insert(side).inserted else { return }
        self.lane(to: side).discard()
        self.lane(from: side).enqueue(byReset ? .reset : .close)
        self.endIfBothGone()
    }

    /// Ends both sockets now, whatever is queued.
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
        // Closing one side may close the other before it returns, so this can come twice.
        guard self.gone.count == 2, !self.hasEnded else { return }
        self.hasEnded = true
        self.toServer.finish()
        self.toClient.finish()
        self.board.ended(self)
    }
}

// MARK: - Faults

extension ProxyLink {
    /// Looks for a request whose reply is to be lost, at the moment when it is written to the server: until then a stall
    /// or a delay may still hold it back.
    private func inspectRequest(_ bytes: ByteBuffer) {
        guard !self.isDropping, let longest = self.board.drops.map(\.count).max() else {
            self.requestTail = []
            return
        }
        let seen = self.requestTail + bytes.readableBytesView
        if let index = self.board.drops.firstIndex(where: { seen.containsRun($0) }) {
            self.board.drops.remove(at: index)
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
        } else if self.board.isSwallowing {
            self.board.ledger.count { $0.swallowedBytes += bytes.readableBytes }
        } else {
            self.forwardReply(bytes)
        }
    }

    private func forwardReply(_ bytes: ByteBuffer) {
        if self.bytesBeforeCut == nil, !self.board.cuts.isEmpty { self.bytesBeforeCut = self.board.cuts.removeFirst() }
        guard let allowed = self.bytesBeforeCut else { return self.toClient.enqueue(.bytes(bytes)) }

        let part = bytes.getSlice(at: bytes.readerIndex, length: min(allowed, bytes.readableBytes)) ?? ByteBuffer()
        if part.readableBytes > 0 { self.toClient.enqueue(.bytes(part)) }
        self.bytesBeforeCut = allowed - part.readableBytes
        guard self.bytesBeforeCut == 0 else { return }
        self.endReplies { $0.cutReplies += 1 }
    }

    /// Ends the server's side now, and the client's once it has got what was queued for it before.
    private func endReplies(_ count: (inout FaultProxy.Counters) -> Void) {
        self.haveRepliesEnded = true
        // Before the client can notice.
        self.board.ledger.count(count)
        self.server?.close(promise: nil)
    }
}

extension Array where Element == UInt8 {
    /// Whether the bytes appear here in one run. No bytes appear anywhere.
    func containsRun(_ run: [UInt8]) -> Bool {
        if run.isEmpty { return true }
        guard run.count <= self.count else { return false }
        return (0...(self.count - run.count)).contains { self[$0...].starts(with: run) }
    }
}
