/// The master of each slot of a cluster.
struct SlotMap: Sendable {
    typealias Endpoint = RedisConfiguration.Endpoint

    /// A master as one server of the cluster describes it (`CLUSTER NODES`).
    struct Master: Hashable {
        var endpoint: Endpoint
        /// Of two servers that claim a slot, the one with the higher epoch has it.
        var epoch: Int
        /// Empty only for the server that describes itself: it serves none.
        var slots: [ClosedRange<Int>]
        /// Whether the server itself says this. It knows better than others what it has given away.
        var isSelf = false
    }

    private struct Owner: Hashable {
        var endpoint: Endpoint
        var epoch: Int
    }

    private var owners: [Owner?]
    /// All masters that have slots.
    private(set) var masters: Set<Endpoint> = []

    /// Makes a map from the descriptions of several servers. For each slot the highest epoch wins, the previous map
    /// included.
    ///
    /// The statement of a server about itself replaces those of others and of the previous map about it, up to its epoch: it
    /// may have given a slot to a server with a lower epoch (`CLUSTER SETSLOT` does not compare them), and would otherwise
    /// keep it in this map for ever. A slot that nobody claims stays where it was, so that its move to the next owner is seen
    /// as one (``changes(since:)``).
    init(_ descriptions: [[Master]], previous: SlotMap? = nil) {
        let all = Array(descriptions.joined())
        let selves = Dictionary(all.filter(\.isSelf).map { ($0.endpoint, $0.epoch) }, uniquingKeysWith: max)
        func isReplaced(_ endpoint: Endpoint, _ epoch: Int) -> Bool { selves[endpoint].map { epoch <= $0 } ?? false }
        owners = Array(repeating: nil, count: HashSlot.count)
        if let previous {
            owners = previous.owners.map { owner in
                owner.flatMap { isReplaced($0.endpoint, $0.epoch) ? nil : $0 }
            }
        }
        for master in all where master.isSelf || !isReplaced(master.endpoint, master.epoch) {
            let owner = Owner(endpoint: master.endpoint, epoch: master.epoch)
            for slot in master.slots.joined() where (owners[slot]?.epoch ?? -1) <= master.epoch { owners[slot] = owner }
        }
        if let previous {
            for slot in owners.indices where owners[slot] == nil { owners[slot] = previous.owners[slot] }
        }
        countMasters()
    }

    private mutating func countMasters() { masters = Set(owners.lazy.compactMap { $0?.endpoint }) }

    func owner(of slot: Int) -> Endpoint? { owners[slot]?.endpoint }

    /// Assigns a slot to another server, because its owner has said so. Any later description counts more.
    mutating func move(slot: Int, to endpoint: Endpoint) {
        owners[slot] = Owner(endpoint: endpoint, epoch: -1)
        countMasters()
    }

    /// Returns the slots that have another owner than in a previous map, by the new owner.
    func changes(since previous: SlotMap) -> [Endpoint: Set<Int>] {
        var changes: [Endpoint: Set<Int>] = [:]
        for slot in 0..<HashSlot.count {
            guard let owner = owners[slot]?.endpoint, let before = previous.owners[slot]?.endpoint, owner != before
            else { continue }
            changes[owner, default: []].insert(slot)
        }
        return changes
    }
}

extension SlotMap.Master {
    /// Reads the reply to `CLUSTER NODES`: the masters that serve slots, and the server that describes itself.
    ///
    /// - Parameters:
    ///   - preferred: hosts that replace the IP addresses.
    ///   - endpoint: returns the address of a server by its host and port. The host is empty when the
    ///     server does not know its own address.
    static func all(
        in text: String, preferred: PreferredHosts = PreferredHosts(),
        endpoint: (_ host: String, _ port: Int) -> SlotMap.Endpoint
    ) -> [Self] {
        text.split(whereSeparator: \.isNewline).compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count >= 8 else { return nil }
            let flags = fields[2].split(separator: ",")
            let isSelf = flags.contains("myself")
            guard flags.contains("master") || isSelf, !flags.contains("fail"), !flags.contains("noaddr"),
                let epoch = Int(fields[6])
            else { return nil }
            // host:port@busport[,hostname]; the host of version 6 of the protocol contains colons.
            let address = fields[1].prefix { $0 != "@" && $0 != "," }
            guard let colon = address.lastIndex(of: ":"), let port = Int(address[address.index(after: colon)...]) else {
                return nil
            }
            // Slots that are being moved stand in brackets; they still belong to their owner.
            let slots = fields.dropFirst(8).compactMap { field -> ClosedRange<Int>? in
                let bounds = field.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
                guard let first = bounds.first ?? nil, let last = bounds.last ?? nil, bounds.count <= 2,
                    0 <= first, first <= last, last < HashSlot.count
                else { return nil }
                return first...last
            }
            if slots.isEmpty, !isSelf { return nil }
            let host = preferred[fields[0]] ?? String(address[..<colon])
            return Self(endpoint: endpoint(host, port), epoch: epoch, slots: slots, isSelf: isSelf)
        }
    }
}
