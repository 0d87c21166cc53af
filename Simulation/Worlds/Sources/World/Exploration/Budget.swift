// How often something that nobody wants may happen on a path.

extension Exploration {
    /// How often each kind of fault happens on a path at most, at any of its points.
    public struct Budget: Hashable, Sendable {
        /// Connections for commands that break while a request is under way. Whether the request arrives, and when, is a
        /// choice; its reply is lost.
        public var breaks = 0
        /// Connections for wake-ups that break.
        public var lostChannels = 0
        /// Processes that die.
        public var deaths = 0
        /// Waits that are cancelled.
        public var cancels = 0
        /// Timers that fire although packets are under way: a time limit or a heartbeat, for example. Other timers fire
        /// when nothing else can happen.
        public var timers = 0
        /// Promotions of a replica that lacks up to ``maxLag`` of the last writes.
        public var promotions = 0
        /// The writes that a promoted replica may lack.
        public var maxLag = 3

        /// Creates a budget without faults.
        public init() {}

        /// The kinds of faults.
        static let kinds: [(name: String, keyPath: any WritableKeyPath<Budget, Int> & Sendable)] = [
            ("break", \.breaks), ("channel", \.lostChannels), ("death", \.deaths), ("cancel", \.cancels),
            ("timer", \.timers), ("promotion", \.promotions),
        ]
    }
}

extension Exploration.Budget: CustomStringConvertible {
    /// The faults in words.
    public var description: String {
        let words = Self.kinds.compactMap { name, keyPath in
            let count = self[keyPath: keyPath]
            return count > 0 ? "\(count) \(name)" + (keyPath == \.promotions ? " (lag ≤ \(maxLag))" : "") : nil
        }
        return words.isEmpty ? "none" : words.joined(separator: ", ")
    }
}
