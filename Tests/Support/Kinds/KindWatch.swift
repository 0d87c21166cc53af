// The invariants of a mix of all primitives, as observed inside the process.
import RedisDC

/// A recorder of operations that reports each violated invariant as a fault.
public actor KindWatch {
    private struct Holder {
        var room: String
        var size: Int
        var group: String
        var lease: Lease
        var operation: String
    }
    private var holders: [ObjectIdentifier: Holder] = [:]
    private var arrivals: [String: [UInt64: [Int]]] = [:]
    private var meetings: [[String]: Set<String>] = [:]
    private var down: Set<String> = []
    private var begun: Set<String> = []
    private var handled: Set<String> = []
    private var put: Set<String> = []
    /// Whether no other process takes part, whose operations would be missing here.
    private let isAlone: Bool
    /// Whether a replica is promoted that lacks the last writes. Then two holders may be in together, if one of them is
    /// notified of its loss.
    private let expectsRollback: Bool
    private var overlaps: [(String, String, fault: String)] = []
    private var notified: Set<String> = []
    /// The number of comparisons with what is promised.
    public private(set) var checks = 0
    /// The number of successful operations of each use, by its name.
    public private(set) var successes: [String: Int] = [:]
    /// The violated invariants; empty if all operations were correct.
    public private(set) var faults: [String] = []

    /// Creates a recorder.
    ///
    /// - Parameters:
    ///   - isAlone: whether no other process takes part in the mix.
    ///   - expectsRollback: whether a replica is promoted that lacks the last writes.
    public init(isAlone: Bool = true, expectsRollback: Bool = false) {
        (self.isAlone, self.expectsRollback) = (isAlone, expectsRollback)
    }

    func succeeded(_ use: KindUse) { successes[use.name, default: 0] += 1 }

    // MARK: - Locks and permits

    /// Records that a holder has entered a room, the section that a lock or a semaphore protects.
    ///
    /// All holders in a room whose leases are held must be allowed there at the same time.
    func enters(_ room: String, _ size: Int, of capacity: Int, _ group: String, _ lease: Lease, in operation: String) {
        guard lease.isHeld else { return }
        checks += 1
        let others = holders.values.filter { $0.room == room && $0.lease !== lease && $0.lease.isHeld }
        if others.reduce(size, { $0 + $1.size }) > capacity {
            let fault = "\(room) is too full: \(others.count + 1) holders exceed the capacity of \(capacity)"
            report(fault, operation, others)
        }
        let strangers = others.filter { $0.group != group }
        if !strangers.isEmpty { report("two groups in \(room)", operation, strangers) }
        if others.contains(where: { $0.lease.fence == lease.fence }) { faults.append("two equal fences in \(room)") }
        holders[ObjectIdentifier(lease)] = Holder(
            room: room, size: size, group: group, lease: lease, operation: operation)
    }

    func leaves(_ lease: Lease) {
        if let holder = holders.removeValue(forKey: ObjectIdentifier(lease)), !lease.isHeld {
            wasNotified(holder.operation)
        }
    }

    /// Records that an operation has learned that its lease was lost.
    func wasNotified(_ operation: String) { notified.insert(operation) }

    private func report(_ fault: String, _ operation: String, _ others: [Holder]) {
        guard expectsRollback else { return faults.append(fault) }
        for other in others { overlaps.append((operation, other.operation, fault)) }
    }

    /// Holders that were in together, of which neither was notified of a loss; the operations of both, and the fault.
    public var silentOverlaps: [(String, String, fault: String)] {
        overlaps.filter { !notified.contains($0.0) && !notified.contains($0.1) }
    }

    // MARK: - Barriers and exchangers

    func passed(_ name: String, _ parties: Int, _ arrival: Arrival) {
        checks += 1
        let others = arrivals[name, default: [:]][arrival.generation, default: []]
        if others.contains(arrival.index) || others.count == parties { faults.append("\(name): \(arrival) repeated") }
        arrivals[name, default: [:]][arrival.generation, default: []].append(arrival.index)
    }

    func met(_ id: String, _ values: [String]) {
        checks += 1
        if !values.contains(id) { faults.append("\(id) is missing from its own exchange") }
        meetings[values, default: []].insert(id)
        if meetings.keys.count(where: { $0.contains(id) }) > 1 { faults.append("\(id) is in two exchanges") }
    }

    // MARK: - Latch

    func countsDown(_ id: String) { down.insert(id) }

    func latchOpened(of count: Int) {
        if isAlone, down.count < count { faults.append("the latch opened after only \(down)") }
    }

    // MARK: - Bounded buffer

    func puts(_ item: String) { begun.insert(item) }
    func hasPut(_ item: String) { put.insert(item) }

    /// Records that an item was taken from the buffer.
    public func handles(_ item: String) {
        checks += 1
        if isAlone, !begun.contains(item) { faults.append("\(item) was never put") }
        handled.insert(item)
    }

    /// The items that were put successfully and have not been taken.
    public var missing: Set<String> { put.subtracting(handled) }
}
