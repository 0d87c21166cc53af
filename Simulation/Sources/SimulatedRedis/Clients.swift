// The clients of a server: what they subscribe to, what they wait for, and what they have not received yet.

/// A connection of a client.
public struct ClientID: Hashable, Comparable, Sendable {
    /// The number that `CLIENT ID` replies.
    public let number: Int

    public static func < (one: ClientID, other: ClientID) -> Bool { one.number < other.number }
}

/// A reply or message that a client receives after `execute` has returned.
public struct Delivery: Hashable, Sendable {
    /// The client that receives it.
    public let client: ClientID
    /// A message of a channel, as `["message", channel, message]`; the confirmation of a subscription; or the reply to a
    /// command that has waited.
    public let reply: Reply
}

/// All clients of a server.
struct Clients: Sendable, Hashable {
    private var states: [ClientID: Client] = [:]
    private var lastNumber: Int
    /// The clients that wait, in the order in which they began.
    var waiting: [ClientID] = []
    /// Keys to which elements were added that waiting clients may want.
    var readyKeys: [Bytes] = []
    var deliveries: [Delivery] = []

    init(lastNumber: Int = 0) { self.lastNumber = lastNumber }

    subscript(id: ClientID) -> Client? {
        get { states[id] }
        set { states[id] = newValue }
    }

    var all: [ClientID] { states.keys.sorted() }

    mutating func add() -> ClientID {
        lastNumber += 1
        let id = ClientID(number: lastNumber)
        states[id] = Client()
        return id
    }

    mutating func remove(_ id: ClientID) {
        states[id] = nil
        waiting.removeAll { $0 == id }
        deliveries.removeAll { $0.client == id }
    }

    /// Removes all clients. Their numbers are not used again.
    mutating func removeAll() {
        self = Clients(lastNumber: lastNumber)
    }

    mutating func deliver(_ reply: Reply, to id: ClientID) { deliveries.append(Delivery(client: id, reply: reply)) }
}

/// The state of one client.
struct Client: Sendable, Hashable {
    var name: Bytes?
    /// The channels in the order of their subscription.
    var channels: [Bytes] = []
    var wait: Wait?
    var transaction: Transaction?
    /// Whether the next command may be on a slot that is imported.
    var isAsking = false
    /// Whether it reads from a replica of a cluster.
    var readsReplica = false

    var isSubscribed: Bool { !channels.isEmpty }

    /// Commands that EXEC runs.
    struct Transaction: Sendable, Hashable {
        var commands: [[Bytes]] = []
        /// Whether a command was refused, so that EXEC runs none.
        var isRefused = false
    }

    /// The wait of a client.
    struct Wait: Sendable, Hashable {
        enum Event: Sendable, Hashable {
            /// An element of one of these lists, from the end or from the beginning.
            case element(keys: [Bytes], fromEnd: Bool)
            /// So many replicas at this offset.
            case replicas(count: Int, offset: Int64)
        }
        var event: Event
        /// The time in microseconds at which it has waited long enough.
        var deadline: Int64?
    }
}

extension SimulatedRedis {
    /// Adds a client. Clients are needed to subscribe, to wait and for transactions.
    public mutating func connect() -> ClientID { clients.add() }

    /// Removes a client, as when its connection breaks: what it has not received is lost.
    public mutating func disconnect(_ client: ClientID) { clients.remove(client) }

    /// Returns what clients have received since the last call, in order.
    public mutating func takeDeliveries() -> [Delivery] {
        defer { clients.deliveries = [] }
        return clients.deliveries
    }

    /// The clients that wait for an element or for replicas, in the order in which they began.
    public var waitingClients: [ClientID] { clients.waiting }

    /// The earliest time, in microseconds, at which a client stops waiting.
    public var nextDeadline: Int64? { clients.waiting.compactMap { clients[$0]?.wait?.deadline }.min() }
}
