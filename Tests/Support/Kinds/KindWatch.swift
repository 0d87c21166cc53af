// What a mix of all primitives must never do, seen from inside the process.
import RedisDC

/// Everybody says here what he does; what cannot be is a fault.
public actor KindWatch {
    private struct Holder {
        var room: String
        var size: Int
        var group: String
        var lease: Lease
    }
    private var holders: [ObjectIdentifier: Holder] = [:]
    private var arrivals: [String: [UInt64: [Int]]] = [:]
    private var meetings: [[String]: Set<String>] = [:]
    private var down: Set<String> = []
    private var begun: Set<String> = []
    private var handled: Set<String> = []
    private var put: Set<String> = []
    /// Whether nobody else takes part, of whom it hears nothing.
    private let isAlone: Bool
    public private(set) var successes: [Kind: Int] = [:]
    public private(set) var faults: [String] = []

    public init(isAlone: Bool = true) { self.isAlone = isAlone }

    func succeeded(_ kind: Kind) { successes[kind, default: 0] += 1 }

    // MARK: Rooms

    /// Of those who are in, each says that its lease is held; so they must be allowed together.
    func enters(_ room: String, _ size: Int, of capacity: Int, _ group: String, _ lease: Lease) {
        guard lease.isHeld else { return }
        let others = holders.values.filter { $0.room == room && $0.lease !== lease && $0.lease.isHeld }
        if others.reduce(size, { $0 + $1.size }) > capacity {
            faults.append("\(room) is too full: \(others.count + 1)")
        }
        if others.contains(where: { $0.group != group }) { faults.append("two groups in \(room)") }
        if others.contains(where: { $0.lease.fence == lease.fence }) { faults.append("one fence twice in \(room)") }
        holders[ObjectIdentifier(lease)] = Holder(room: room, size: size, group: group, lease: lease)
    }

    func leaves(_ lease: Lease) { holders[ObjectIdentifier(lease)] = nil }

    // MARK: Meetings

    func passed(_ name: String, _ parties: Int, _ arrival: Arrival) {
        let others = arrivals[name, default: [:]][arrival.generation, default: []]
        if others.contains(arrival.index) || others.count == parties { faults.append("\(name): \(arrival) twice") }
        arrivals[name, default: [:]][arrival.generation, default: []].append(arrival.index)
    }

    func met(_ id: String, _ values: [String]) {
        if !values.contains(id) { faults.append("\(id) is not in its own meeting") }
        meetings[values, default: []].insert(id)
        if meetings.keys.count(where: { $0.contains(id) }) > 1 { faults.append("\(id) is in two meetings") }
    }

    // MARK: Latch

    func countsDown(_ id: String) { down.insert(id) }

    func latchOpened(of count: Int) {
        if isAlone, down.count < count { faults.append("the latch opened for \(down)") }
    }

    // MARK: Buffer

    func puts(_ item: String) { begun.insert(item) }
    func hasPut(_ item: String) { put.insert(item) }

    public func handles(_ item: String) {
        if isAlone, !begun.contains(item) { faults.append("\(item) was never put") }
        handled.insert(item)
    }

    /// What was certainly put and has not been seen.
    public var missing: Set<String> { put.subtracting(handled) }
}
