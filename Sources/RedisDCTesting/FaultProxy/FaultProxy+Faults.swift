import NIOCore

extension FaultProxy {
    /// The way in which ``cutAll(_:)`` ends connections.
    public enum CutStyle: Sendable {
        /// An orderly close (FIN), as when a program exits. A peer with unread bytes may still see
        /// a reset.
        case close
        /// A reset (RST), as from a machine that no longer knows the connection. Unix sockets are
        /// closed in the orderly way.
        case reset
    }

    /// Delays all traffic, including closes.
    ///
    /// The order does not change, and neither does the throughput up to the megabyte that the proxy
    /// buffers. The delay applies to traffic that arrives after the call. After the delay is
    /// shortened, new bytes still wait for earlier bytes that have the longer delay.
    ///
    /// - Parameters:
    ///   - duration: the minimum delay; zero ends the delay.
    ///   - direction: the direction to delay; both by default.
    public func delay(_ duration: Duration, _ direction: Direction = .both) async {
        await self.onLoop { $0.delay(TimeAmount(duration), direction) }
    }

    /// Stops forwarding bytes and closes while the sockets stay open, as a network partition does.
    ///
    /// New connections are accepted, connected to the server, and stalled. The proxy buffers the
    /// traffic until ``unstall(_:)``; after about a megabyte the sender has to wait. ``cutAll(_:)``
    /// also ends stalled connections.
    ///
    /// - Parameter direction: the direction to stall; both by default. The other direction does not
    ///   change.
    public func stall(_ direction: Direction = .both) async {
        await self.onLoop { $0.stall(direction, true) }
    }

    /// Ends a stall and forwards the buffered traffic in order.
    ///
    /// - Parameter direction: the direction to resume; both by default. The other direction does
    ///   not change.
    public func unstall(_ direction: Direction = .both) async {
        await self.onLoop { $0.stall(direction, false) }
    }

    /// Forwards new connections to another server, as when an address moves to a promoted replica.
    ///
    /// Open connections stay with the old server until ``cutAll(_:)``.
    ///
    /// - Parameter target: the server of new connections.
    public func redirect(to target: Target) async {
        await self.onLoop { $0.redirect(to: target) }
    }

    /// Drops the reply to the next request that contains a text.
    ///
    /// **The command runs**, and the client's connection closes before the reply arrives.
    ///
    /// In terms of bytes: the fault selects the connection on which the text is next written to the
    /// server. The text may be split over two reads; bytes that a stall or a delay holds back do
    /// not count until they are written. The proxy forwards this request and all later ones. When
    /// the server next sends bytes on this connection, the proxy discards them and closes both
    /// sides. Bytes that the server sent earlier still reach the client.
    ///
    /// With pipelining, the first outstanding reply triggers the fault, even if it answers an
    /// earlier request. In that case all requests have reached the server's socket, but only the
    /// request that this reply answers is known to have run. To be certain, send the request alone.
    ///
    /// Each call drops one reply.
    ///
    /// - Parameter text: the text to look for, compared byte by byte. The empty text matches every
    ///   request.
    public func dropNextReply(matching text: String) async {
        await self.dropNextReply(matching: Array(text.utf8))
    }

    /// Drops the reply to the next request that contains a sequence of bytes.
    ///
    /// See ``dropNextReply(matching:)-(String)``.
    ///
    /// - Parameter bytes: the bytes to look for. The empty sequence matches every request.
    public func dropNextReply(matching bytes: [UInt8]) async {
        await self.onLoop { $0.pendingDrops.append(bytes) }
    }

    /// Forwards requests, and discards all bytes from the server while the sockets stay open.
    ///
    /// Closes by the server are still forwarded. When the fault is switched off, the connections that have lost a reply
    /// are closed, because their clients would take the next reply for it.
    ///
    /// - Parameter isOn: whether to discard replies; true by default.
    public func swallowReplies(_ isOn: Bool = true) async {
        await self.onLoop { $0.swallow(isOn) }
    }

    /// Discards all further bytes of the connections that are open now, in both directions, while their sockets stay
    /// open: the network has lost these connections, and neither side is notified.
    ///
    /// New connections work. A close by either side is still forwarded. The fault lasts until the connection ends;
    /// ``heal()`` does not end it, because bytes are missing.
    public func silenceOpenConnections() async {
        await self.onLoop { $0.silenceOpenConnections() }
    }

    /// Truncates the next reply: the client receives its first bytes, then its connection closes.
    ///
    /// In terms of bytes: the fault selects the connection on which the server next sends bytes.
    /// The proxy forwards the next `count` bytes from the server on this connection, even if they
    /// span several reads or replies. Then it closes both sides and discards the rest.
    ///
    /// Each call affects one connection.
    ///
    /// - Parameter count: the number of bytes to forward, at least 0. With 0 the client receives no
    ///   part of the reply.
    public func cutNextReply(afterBytes count: Int) async {
        precondition(count >= 0, "cannot cut a reply after \(count) bytes: pass 0 or more")
        await self.onLoop { $0.pendingCuts.append(count) }
    }

    /// Closes both sides of all open connections, and discards their buffered traffic.
    ///
    /// New connections are still accepted; ``refuse(_:)`` prevents that.
    ///
    /// - Parameter style: how to end the connections; an orderly close by default.
    public func cutAll(_ style: CutStyle = .close) async {
        await self.onLoop { $0.cutAll(withReset: style == .reset) }
    }

    /// Accepts and immediately closes each new connection, without connecting to the server.
    ///
    /// Open connections are not affected. The port stays open so that no other program can take it;
    /// clients therefore see a connection that opens and closes, not "connection refused".
    ///
    /// - Parameter isOn: whether to refuse connections; true by default.
    public func refuse(_ isOn: Bool = true) async {
        await self.onLoop { $0.refuse(isOn) }
    }

    /// Ends all faults, including those that wait for their request or reply.
    ///
    /// Traffic that a stall held back is forwarded. Connections whose replies were swallowed are closed.
    public func heal() async {
        await self.onLoop { $0.heal() }
    }
}
