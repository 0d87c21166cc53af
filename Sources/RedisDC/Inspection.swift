// Who holds what, since when, and who waits for it.
import Hiredis
import CoordinationBase

/// A picture of one semaphore or mutex at one moment.
public struct Inspection: Sendable {
    /// A session that holds permits of the resource.
    public struct Holder: Sendable {
        /// The session of the process.
        public var session: String
        /// Names the claim, for ``Coordinator/forceRelease(_:holder:)``: the session, a colon, and the request's number.
        public var id: String
        /// The number of permits it holds.
        public var count: Int
        /// The fence of the grant.
        public var fence: UInt64
        /// When it was granted them, in microseconds since 1970 by Redis's clock.
        public var since: UInt64
        /// How long it has held them, by Redis's clock.
        public var duration: Duration
        /// Host, process id and name of the program.
        public var node: String
    }

    /// A session that waits for permits of the resource.
    public struct Waiter: Sendable {
        /// The session of the process.
        public var session: String
        /// The claim: the session, a colon, and the request's number.
        public var id: String
        /// The number of permits it waits for.
        public var count: Int
        /// When it began to wait, in microseconds since 1970 by Redis's clock.
        public var since: UInt64
        /// How long it has waited, by Redis's clock.
        public var duration: Duration
        /// Host, process id and name of the program.
        public var node: String
    }

    public var name: String
    /// `semaphore`, `mutex`, `read-write lock`, `condition`, `turnstile`, `latch`, `barrier`, `phaser`, `broken` or
    /// `being destroyed`.
    public var kind: String
    public var fairness: Fairness
    /// What it has in all.
    public var permits: Int
    /// Permits to be had now.
    public var available: Int
    /// Added by `signal` so far, and taken for good.
    public var signalled: Int
    public var consumed: Int
    /// How many hold and how many wait; the lists have at most the number that was asked for.
    public var holderCount: Int
    public var waiterCount: Int
    public var holders: [Holder]
    /// First come, first.
    public var waiters: [Waiter]
}

/// One line of a list.
public struct ResourceSummary: Sendable {
    public var name: String
    public var kind: String
    public var permits: Int
    public var available: Int
    public var waiters: Int
    /// How long the first waiter has waited.
    public var longestWait: Duration?
}

/// A picture of a namespace.
public struct ResourceList: Sendable {
    public var sessions: Int
    public var resources: [ResourceSummary]
}

extension Coordinator {
    /// Looks at a semaphore or mutex. `nil` when there is none; a mutex that nobody holds or wants is not there.
    ///
    /// - Parameter limit: most holders, and most waiters, to list. 1 to 10,000.
    public func inspect(_ name: String, limit: Int = 100) async throws(RedisDCError) -> Inspection? {
        try ResourceName.validate(name)
        guard (1...10_000).contains(limit) else {
            throw RedisDCError(.invalidArgument, "limit is \(limit), expected 1 to 10000")
        }
        let reply = try await look(
            Scripts.engineInspect, partition: place.partition(of: name), [.string(name), .integer(limit)])
        guard let parts = reply.array, parts.count == 13 else { return nil }
        let numbers = parts.map { $0.number ?? 0 }
        func rows<Row>(_ value: RESPValue, _ make: (String, Int, UInt64, Duration, String) -> Row) -> [Row] {
            let cells = value.array ?? []
            return stride(from: 0, to: cells.count - 3, by: 4).map { index in
                let tick = UInt64(max(0, cells[index + 2].number ?? 0))
                return make(
                    cells[index].string ?? "", cells[index + 1].number ?? 0, tick,
                    .microseconds(max(0, numbers[0] - Int(tick))), cells[index + 3].string ?? "")
            }
        }
        func session(_ id: String) -> String { String(id.prefix { $0 != ":" }) }
        let holders = rows(parts[11]) { id, count, tick, duration, node in
            Inspection.Holder(
                session: session(id), id: id, count: count, fence: tick, since: tick, duration: duration, node: node)
        }
        let waiters = rows(parts[12]) { id, count, tick, duration, node in
            Inspection.Waiter(
                session: session(id), id: id, count: count, since: tick, duration: duration, node: node)
        }
        return Inspection(
            name: name, kind: Self.kind(parts[1]), fairness: parts[2].string == "b" ? .barging : .fifo,
            permits: numbers[4], available: numbers[5], signalled: numbers[8], consumed: numbers[9],
            holderCount: numbers[10], waiterCount: numbers[6], holders: holders, waiters: waiters)
    }

    /// Looks at everything in the namespace. The cost is proportional to that; it is read in pieces.
    public func list() async throws(RedisDCError) -> ResourceList {
        var list = ResourceList(sessions: 0, resources: [])
        for partition in 0..<place.partitions {
            var cursor = "0"
            repeat {
                let reply = try await look(Scripts.engineList, partition: partition, [.string(cursor)])
                guard let parts = reply.array, parts.count == 4, let next = parts[0].string else { break }
                cursor = next
                if cursor == "0" { list.sessions += parts[2].number ?? 0 }
                let cells = parts[3].array ?? []
                for index in stride(from: 0, to: cells.count - 5, by: 6) {
                    list.resources.append(
                        ResourceSummary(
                            name: cells[index].string ?? "", kind: Self.kind(cells[index + 1]),
                            permits: cells[index + 2].number ?? 0, available: cells[index + 3].number ?? 0,
                            waiters: cells[index + 4].number ?? 0,
                            longestWait: cells[index + 5].number.map {
                                .microseconds(max(0, (parts[1].number ?? 0) - $0))
                            }))
                }
            } while cursor != "0"
        }
        return list
    }

    /// Takes a semaphore's permits or a mutex away from its holders, for operators. They are told.
    ///
    /// - Parameter holder: the ``Inspection/Holder/id`` of one holder; `nil` takes it away from all.
    /// - Returns: how many held it.
    @discardableResult
    public func forceRelease(_ name: String, holder: String? = nil) async throws(RedisDCError) -> Int {
        var total = 0
        while true {
            let all = try await inspect(name, limit: 1000)?.holders.map(\.id) ?? []
            let chosen = all.filter { holder == nil || $0 == holder }
            var ended = 0
            for id in chosen {
                let parts = id.split(separator: ":")
                guard parts.count == 2, let claim = UInt64(parts[1]) else { continue }
                let release = Operation.release(name: name, claim: claim, owner: String(parts[0]), force: true)
                ended += try await engine(of: name).call(release)
            }
            total += ended
            if ended == 0 || chosen.count < 1000 { return total }
        }
    }

    private static func kind(_ value: RESPValue) -> String {
        switch value.string {
        case "z": "broken"
        case let letter?: Resource.Kind(rawValue: letter)?.title ?? "being destroyed"
        case nil: "being destroyed"
        }
    }
}
