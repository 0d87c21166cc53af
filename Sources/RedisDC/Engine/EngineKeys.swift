package import CoordinationBase

/// The names of the engine's keys and channels in one namespace.
///
/// `docs/wire-format.md` describes what they contain.
package struct EngineKeys: Sendable, Hashable {
    private let namespace: Namespace

    package init(_ namespace: Namespace) { self.namespace = namespace }

    /// The hash with the state of a partition: sessions, claims, resources, the clock and the
    /// epoch.
    package func state(partition: Int) -> String { namespace.key("book", partition: partition) }

    /// The sorted set that indexes the state by prefix.
    package func index(partition: Int) -> String { namespace.key("index", partition: partition) }

    /// The sorted set of a partition's sessions by the time at which they expire.
    package func sessions(partition: Int) -> String { namespace.key("sessions", partition: partition) }

    /// The hash with the items of a partition's buffers, and with what is brought to its exchangers.
    package func values(partition: Int) -> String { namespace.key("values", partition: partition) }

    /// The sorted set of the ids that a bounded buffer remembers.
    package func putIDs(_ buffer: String) -> String {
        namespace.key("put:\(buffer)", partition: namespace.partition(of: buffer))
    }

    /// The keys of a partition in the order of the scripts' `KEYS`: state, index, sessions, values.
    package func scriptKeys(partition: Int) -> [String] {
        [
            state(partition: partition), index(partition: partition), sessions(partition: partition),
            values(partition: partition),
        ]
    }

    /// The beginning of the names of a partition's wake-up channels. A session's identifier
    /// follows.
    package func wakePrefix(partition: Int) -> String { namespace.key("wake:", partition: partition) }

    /// The channel that announces changes of an election's leader.
    package func leaderChannel(_ election: String) -> String {
        namespace.key("leader:\(election)", partition: namespace.partition(of: election))
    }

    /// The key of a rate limiter.
    package func rateLimiter(_ name: String) -> String {
        namespace.key("rate:\(name)", partition: namespace.partition(of: name))
    }
}

/// A partition's keys in the order of the scripts' `KEYS`. The strings are made once, not for each request.
struct PartitionKeys: Sendable {
    /// State, index, sessions and values.
    let all: [String]
    /// State and index.
    let resources: [String]
    private let wakePrefix: String
    private let keys: EngineKeys

    init(_ namespace: Namespace, partition: Int) {
        keys = EngineKeys(namespace)
        all = keys.scriptKeys(partition: partition)
        resources = Array(all.prefix(2))
        wakePrefix = keys.wakePrefix(partition: partition)
    }

    /// Returns the keys of a request's script.
    func keys(of request: EngineRequest) -> [String] {
        switch request.operation.keys {
        case .resources: resources
        case .all: all
        case .putIDs(let buffer): all + [keys.putIDs(buffer)]
        }
    }

    func wakeUpChannel(of session: String) -> String { wakePrefix + session }
}
