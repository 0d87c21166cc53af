// A Redis server as a value.

/// A Redis server as a value: its keys, its scripts, its clients and its clock.
///
/// A copy is another server with the same state, as if the world had been forked. It shares storage with the original
/// until one of them changes, so copies are cheap. Nothing happens by itself: `execute` runs a command, `advance` lets time
/// pass, and the functions for faults do what happens to a real server. The same calls give the same results in each run.
///
///     var server = SimulatedRedis()
///     server.execute("HSET", "user", "name", "Ada")
///     let fork = server
///     server.execute("DEL", "user")
///     server.execute("EXISTS", "user")   // 0, and 1 in `fork`
///
/// Replies, errors and orders are those of Redis 7.0. Commands that the scripts and clients of RedisDC do not use are
/// unknown.
public struct SimulatedRedis: Sendable {
    /// The settings of the server.
    public var settings: Settings

    /// The time in microseconds since 1970 that `TIME` replies, which is also that of expiries and timeouts.
    public internal(set) var now: Int64

    var entries: [Bytes: Entry] = [:]
    var scripts: [Bytes: Bytes] = [:]
    var clients = Clients()
    var replication = ReplicationState()
    var cluster: ClusterState?
    var saved: SavedState?

    // MARK: State of the running command

    /// The client that has sent the command.
    var caller: ClientID?
    /// The script that runs.
    var script: RunningScript?
    /// Whether EXEC runs, in which no command waits.
    var isInTransaction = false
    /// The number of changes of the keyspace so far.
    var changes = 0
    /// The commands that the replicas execute in place of the running command, if it is not the command itself.
    var rewritten: [[Bytes]]?
    /// The commands that the replicas execute for those so far.
    var pending: [[Bytes]] = []

    /// Creates an empty server.
    ///
    /// - Parameters:
    ///   - settings: The settings of the server.
    ///   - now: The time by its clock, in microseconds since 1970.
    public init(settings: Settings = Settings(), now: Int64 = 1_700_000_000_000_000) {
        self.settings = settings
        self.now = now
    }

    /// The settings of a server.
    public struct Settings: Hashable, Sendable {
        /// How numbers are written, which differs between versions.
        public var numberFormat = NumberFormat.seventeenDigits
        /// The size of the data, as `estimatedSize` counts it, above which commands that need memory are refused; without
        /// it, there is no limit.
        public var maxMemory: Int?
        /// Whether the server keeps what replicas execute.
        public var keepsEffects = false

        /// Creates settings.
        public init(
            numberFormat: NumberFormat = .seventeenDigits, maxMemory: Int? = nil, keepsEffects: Bool = false
        ) {
            self.numberFormat = numberFormat
            self.maxMemory = maxMemory
            self.keepsEffects = keepsEffects
        }
    }

    /// A key's value with the time at which it expires, in milliseconds since 1970.
    struct Entry: Hashable, Sendable {
        var value: Value
        var expires: Int64?
    }

    /// A script that runs.
    struct RunningScript: Sendable {
        var hasWritten = false
        /// Whether the limit of memory was exceeded when the script began.
        var wasOutOfMemory: Bool
        /// The slot of its keys, on a server of a cluster.
        var slot: Int?
    }

    /// The time in milliseconds, which expiries are compared with.
    var nowInMilliseconds: Int64 { now / 1000 }
}

extension SimulatedRedis {
    /// Runs a command. Returns its reply, or nil when the client waits: for an element of a list, for messages of channels
    /// or for the end of its transaction. Then `takeDeliveries` has what it receives.
    ///
    /// - Parameters:
    ///   - command: The name of the command, in any case of the letters, and its arguments.
    ///   - client: The client that sends it. Without one, commands that would wait reply at once that there is nothing.
    @discardableResult
    public mutating func execute(_ command: [Bytes], from client: ClientID? = nil) -> Reply? {
        guard let name = command.first else { return nil }
        caller = client
        defer { caller = nil }
        let reply = process(name, command)
        commitEffects()
        serveWaitingClients()
        return reply
    }

    /// Runs a command that is given as a list of its words, without a client. Returns its reply.
    @discardableResult
    public mutating func execute(_ words: Bytes...) -> Reply { execute(words) ?? .null }

    /// Lets time pass: clients whose time is over receive that there is nothing.
    ///
    /// - Parameter microseconds: A negative number is a step of the clock back.
    public mutating func advance(by microseconds: Int64) { advance(to: now + microseconds) }

    /// Sets the clock: clients whose time is over receive that there is nothing.
    ///
    /// - Parameter time: In microseconds since 1970. It may be earlier than now.
    public mutating func advance(to time: Int64) {
        now = time
        endWaits()
    }
}
