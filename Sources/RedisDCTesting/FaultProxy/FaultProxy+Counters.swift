extension FaultProxy {
    /// The counters of a proxy.
    ///
    /// They only increase, except ``openConnections`` and ``keptBytes``.
    public struct Counters: Sendable, Hashable {
        /// Client connections accepted, without the ``refusedConnections``.
        public var acceptedConnections = 0
        /// Client connections closed immediately because of ``FaultProxy/refuse(_:)``.
        public var refusedConnections = 0
        /// Connections with at least one open side.
        public var openConnections = 0
        /// Bytes written to the sockets of servers.
        public var bytesToServer = 0
        /// Bytes written to the sockets of clients.
        public var bytesToClient = 0
        /// Bytes received but not yet written, because of a delay, a stall or a slow peer.
        public var keptBytes = 0
        /// Replies dropped by ``FaultProxy/dropNextReply(matching:)-(String)``.
        public var droppedReplies = 0
        /// Replies truncated by ``FaultProxy/cutNextReply(afterBytes:)``.
        public var cutReplies = 0
        /// Bytes discarded by ``FaultProxy/swallowReplies(_:)`` and ``FaultProxy/silenceOpenConnections()``.
        public var swallowedBytes = 0

        /// Creates counters that are all zero.
        public init() {}
    }
}
