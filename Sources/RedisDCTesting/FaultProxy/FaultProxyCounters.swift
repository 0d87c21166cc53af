extension FaultProxy {
    /// What a proxy has done so far. Counts only grow, but for ``openConnections`` and ``keptBytes``.
    public struct Counters: Sendable, Hashable {
        /// Clients' connections that were accepted, ``refusedConnections`` not included.
        public var acceptedConnections = 0
        /// Connections that were closed at once because of ``FaultProxy/refuse(_:)``.
        public var refusedConnections = 0
        /// Connections of which at least one side is still open.
        public var openConnections = 0
        /// Bytes handed to the kernel for servers.
        public var bytesToServer = 0
        /// Bytes handed to the kernel for clients.
        public var bytesToClient = 0
        /// Bytes that have arrived and have not been handed to the kernel yet: a delay, a stall or a slow peer keeps them.
        public var keptBytes = 0
        /// Replies thrown away by ``FaultProxy/dropNextReply(matching:)-(String)``.
        public var droppedReplies = 0
        /// Replies cut off by ``FaultProxy/cutNextReply(afterBytes:)``.
        public var cutReplies = 0
        /// Bytes discarded by ``FaultProxy/swallowReplies(_:)``.
        public var swallowedBytes = 0

        /// All zero.
        public init() {}
    }
}
