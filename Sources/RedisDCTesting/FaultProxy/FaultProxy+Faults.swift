import NIOCore

extension FaultProxy {
    /// How ``cutAll(_:)`` ends connections.
    public enum CutStyle: Sendable {
        /// As a program does that ends (FIN). A peer whose bytes were not read yet may see a reset all the same.
        case close
        /// As a machine does that has forgotten the connection (RST). A Unix socket is closed the ordinary way.
        case reset
    }

    /// Keeps everything, closes too, for a time before passing it on. The order stays, and so does the throughput, up to
    /// the megabyte that the proxy keeps.
    ///
    /// It is for what arrives from now on. When the delay is shortened, new bytes still wait for those ahead of them.
    ///
    /// - Parameters:
    ///   - duration: how long, at least; zero ends the delay.
    ///   - direction: which way; both by default.
    public func delay(_ duration: Duration, _ direction: Direction = .both) async {
        await self.onLoop { $0.delay(TimeAmount(duration), direction) }
    }

    /// Passes nothing on in a direction, neither bytes nor closes, with the sockets open, as a network does that has
    /// stopped working.
    ///
    /// New connections are accepted, connected to the server, and stalled. What arrives is kept for ``unstall(_:)``; when
    /// the proxy has a megabyte of it, the sender has to wait. ``cutAll(_:)`` ends stalled connections too.
    ///
    /// - Parameter direction: which way; both by default. The other way is not changed.
    public func stall(_ direction: Direction = .both) async {
        await self.onLoop { $0.stall(direction, true) }
    }

    /// Ends ``stall(_:)``: what was kept is passed on, in order.
    public func unstall(_ direction: Direction = .both) async {
        await self.onLoop { $0.stall(direction, false) }
    }

    /// Loses the reply to the next request that contains a text: **the command runs**, and the client sees its connection
    /// end without the answer.
    ///
    /// Exactly: the first bytes that are written to the server with the text in them, on whichever connection, select
    /// that connection (a text that is split over two reads counts; what a stall or a delay holds back does not count
    /// yet). The request and all that follow it are forwarded. As soon as the server sends anything after that, it is
    /// thrown away and the connection is closed on both sides; what the server had sent before still reaches the client.
    ///
    /// With pipelining it works on bytes all the same: if answers to earlier requests were still outstanding, the first
    /// of them ends the connection. Those requests and this one have reached the server's socket, but then only the
    /// answer that came proves that its request has run. For certainty let the request travel alone.
    ///
    /// Each call is for one reply; two calls lose two.
    ///
    /// - Parameter text: what the request contains, compared byte by byte; the empty text is in every request.
    public func dropNextReply(matching text: String) async {
        await self.dropNextReply(matching: Array(text.utf8))
    }

    /// The same as ``dropNextReply(matching:)-(String)`` for any bytes.
    public func dropNextReply(matching bytes: [UInt8]) async {
        await self.onLoop { $0.drops.append(bytes) }
    }

    /// Forwards requests and discards every byte that the server sends from now on, with the sockets open.
    ///
    /// If the server closes a connection, that is passed on. Once it is switched off, clients that have lost a reply get
    /// the next one in its place: close their connections, or ``cutAll(_:)``.
    public func swallowReplies(_ isOn: Bool = true) async {
        await self.onLoop { $0.swallow(isOn) }
    }

    /// Cuts the next reply short: the client gets the first bytes of it and then the end of its connection.
    ///
    /// Exactly: the next connection on which the server sends anything is selected. The next `count` bytes that the
    /// server sends there are forwarded, however many reads or replies they span; as soon as they have come, the
    /// connection is closed on both sides and the rest is lost.
    ///
    /// Each call is for one connection.
    ///
    /// - Parameter count: at least 0; with 0 the client gets nothing of the reply.
    public func cutNextReply(afterBytes count: Int) async {
        precondition(count >= 0, "cutNextReply(afterBytes: \(count)): a reply has no negative number of bytes")
        await self.onLoop { $0.cuts.append(count) }
    }

    /// Ends all open connections, on both sides, without passing on what the proxy still kept.
    ///
    /// New connections are welcome; see ``refuse(_:)``.
    public func cutAll(_ style: CutStyle = .close) async {
        await self.onLoop { $0.cutAll(withReset: style == .reset) }
    }

    /// Refuses new connections: each is accepted and closed at once, without a connection to the server. Open
    /// connections go on.
    ///
    /// The port stays open, so that no other program can take it meanwhile; a client sees its connection succeed and
    /// end, not "connection refused".
    public func refuse(_ isOn: Bool = true) async {
        await self.onLoop { $0.refuse(isOn) }
    }

    /// Ends all faults: no delay, no stall, nothing refused, swallowed, dropped or cut from now on. What a stall kept is
    /// passed on.
    public func heal() async {
        await self.onLoop { $0.heal() }
    }
}
