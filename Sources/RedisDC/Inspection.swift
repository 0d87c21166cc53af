// For operators: the state of a resource with its holders and waiters, the list of all resources, and forced releases.
import CoordinationBase
import Hiredis

/// The state of one resource at one moment, with its holders and waiters.
public struct Inspection: Sendable {
    /// A claim that holds permits of the resource.
    public struct Holder: Sendable {
        /// The session of the process.
        public var session: String
        /// The id of the claim, for ``Coordinator/forceRelease(_:holder:)``: session, slot and
        /// number of the request, separated by colons.
        public var id: String
        /// The number of permits that the claim holds.
        public var count: Int
        /// The fencing token of the grant: see ``Lease/fence``.
        public var fence: UInt64
        /// The time at which the permits were granted, in microseconds since 1970 by Redis's clock.
        public var since: UInt64
        /// The time for which the claim has held the permits, by Redis's clock.
        public var duration: Duration
        /// The host, process id and program name of the process.
        public var node: String
    }

    /// A claim that waits for permits of the resource.
    public struct Waiter: Sendable {
        /// The session of the process.
        public var session: String
        /// The id of the claim: session, slot and number of the request, separated by colons.
        public var id: String
        /// The number of permits that the claim waits for.
        public var count: Int
        /// The time at which the claim began to wait, in microseconds since 1970 by Redis's clock.
        public var since: UInt64
        /// The time for which the claim has waited, by Redis's clock.
        public var duration: Duration
        /// The host, process id and program name of the process.
        public var node: String
    }

    /// The name of the resource.
    public var name: String
    /// The kind of the resource.
    public var kind: ResourceKind
    /// The order in which waiters are served.
    public var fairness: Fairness
    /// The total number of permits, as created or last resized.
    public var permits: Int
    /// The number of permits available now. Negative after ``Semaphore/resize(to:)`` lowered
    /// ``permits`` below the number in use. Almost 2^50 when
    /// the resource is open for all, as a latch is that has been counted down.
    public var available: Int
    /// The number of permits added by `signal` since the resource was created.
    public var signalled: Int
    /// The number of permits consumed by `wait` since the resource was created, as far as their
    /// receipt is confirmed.
    public var consumed: Int
    /// The number of holders. ``holders`` may list fewer.
    public var holderCount: Int
    /// The number of waiters. ``waiters`` may list fewer.
    public var waiterCount: Int
    /// The holders, at most as many as were asked for.
    public var holders: [Holder]
    /// The waiters in the order in which they are served, at most as many as were asked for.
    public var waiters: [Waiter]
}

extension Inspection {
    /// Reads the reply of the script `inspect`: see views.lua.
    fileprivate init(_ name: String, _ parts: [RESPValue]) {
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
        let holders = rows(parts[10]) { id, count, tick, duration, node in
            Holder(
                session: session(id), id: id, count: count, fence: tick, since: tick, duration: duration, node: node)
        }
        let waiters = rows(parts[11]) { id, count, tick, duration, node in
            Waiter(session: session(id), id: id, count: count, since: tick, duration: duration, node: node)
        }
        self.init(
            name: name, kind: ResourceKind(letters: parts[1].string),
            fairness: parts[1].string == "sb" ? .barging : .fifo,
            permits: numbers[3], available: numbers[4], signalled: numbers[7], consumed: numbers[8],
            holderCount: numbers[9], waiterCount: numbers[5], holders: holders, waiters: waiters)
    }
}

extension Coordinator {
    /// Returns the state of a resource, or `nil` when it does not exist. A mutex that nobody holds
    /// or waits for does not exist.
    ///
    /// The first 128 holders and waiters are of one moment. Each further 128 are read in a step of
    /// their own, between which the server serves others: a claim that changes meanwhile may be
    /// missing.
    ///
    /// - Parameters:
    ///   - name: the name of the resource.
    ///   - limit: the maximum number of holders, and of waiters, to list, 1 to 10,000.
    /// - Throws: `.invalidArgument`, `.conflict` (the namespace has another number of partitions),
    ///   `.connectionLost`, `.notConnected`, `.notPermitted`, `.wrongType`, `.serverError`,
    ///   `.cancelled`, `.stopped`.
    public func inspect(_ name: String, limit: Int = 100) async throws(RedisDCError) -> Inspection? {
        try ResourceName.validate(name)
        try checkArgument("limit", limit, in: 1...10_000, cannot: "inspect \"\(name)\"")
        guard let first = try await inspectionPage(name, limit: limit) else { return nil }
        var inspection = first.inspection
        var (holder, waiter) = (first.lastHolder, first.lastWaiter)
        while !holder.isEmpty, inspection.holders.count < limit {
            let left = limit - inspection.holders.count
            guard let page = try await inspectionPage(name, limit: left, after: ["h", .bytes(holder)]) else { break }
            inspection.holders += page.inspection.holders
            holder = page.lastHolder
        }
        while !waiter.isEmpty, inspection.waiters.count < limit {
            let left = limit - inspection.waiters.count
            guard let page = try await inspectionPage(name, limit: left, after: ["q", .bytes(waiter)]) else { break }
            inspection.waiters += page.inspection.waiters
            waiter = page.lastWaiter
        }
        return inspection
    }

    /// A resource with some of its holders and waiters, and the lines of the index after which the next ones follow: empty
    /// after the last.
    private struct InspectionPage {
        var inspection: Inspection
        var lastHolder: [UInt8]
        var lastWaiter: [UInt8]
    }

    /// Reads a page: the first one, or only holders or only waiters `after` a line. See views.lua.
    private func inspectionPage(
        _ name: String, limit: Int, after: [RedisArgument] = []
    ) async throws(RedisDCError) -> InspectionPage? {
        let partition = keyspace.partition(of: name)
        let reply = try await snapshot(
            Scripts.inspect, partition: partition, [.string(name), .integer(limit)] + after)
        if reply.array?.first?.string == "damaged" {
            throw RedisDCError(
                .serverError,
                "cannot inspect \"\(name)\": its record is damaged, field t:\(name) of "
                    + EngineKeys(keyspace).state(partition: partition))
        }
        guard let parts = reply.array, parts.count == 14 else { return nil }
        return InspectionPage(
            inspection: Inspection(name, parts), lastHolder: parts[12].bytes ?? [], lastWaiter: parts[13].bytes ?? [])
    }

    /// Returns the resources of the namespace. They are read in pages, and the cost is proportional
    /// to their number.
    ///
    /// - Parameter limit: the number of resources after which no further page is read, except the
    ///   first page of each partition. A page has a few hundred resources.
    /// - Throws: what ``inspect(_:limit:)`` throws.
    public func list(limit: Int = .max) async throws(RedisDCError) -> ResourceList {
        var list = ResourceList(sessions: 0, resources: [], damaged: [])
        for partition in 0..<keyspace.partitions {
            var cursor = "0"
            var isFirstPage = true
            repeat {
                let reply = try await snapshot(Scripts.list, partition: partition, [.string(cursor)])
                guard let parts = reply.array, parts.count == 5, let next = parts[0].string else { break }
                cursor = next
                if isFirstPage { list.sessions += parts[2].number ?? 0 }
                isFirstPage = false
                let cells = parts[3].array ?? []
                for index in stride(from: 0, to: cells.count - 5, by: 6) {
                    list.resources.append(
                        ResourceSummary(
                            name: cells[index].string ?? "", kind: ResourceKind(letters: cells[index + 1].string),
                            permits: cells[index + 2].number ?? 0, available: cells[index + 3].number ?? 0,
                            waiters: cells[index + 4].number ?? 0,
                            longestWait: cells[index + 5].number.map {
                                .microseconds(max(0, (parts[1].number ?? 0) - $0))
                            }))
                }
                let damaged = parts[4].array ?? []
                for index in stride(from: 0, to: damaged.count - 1, by: 2) {
                    list.damaged.append(
                        DamagedRecord(
                            resource: damaged[index + 1].string ?? "",
                            key: EngineKeys(keyspace).state(partition: partition), field: damaged[index].string ?? ""))
                }
                if cursor != "0", list.resources.count >= limit {
                    list.isComplete = false
                    break
                }
            } while cursor != "0"
        }
        return list
    }

    /// Releases the claims of all holders of a resource, or of one holder, for operators.
    ///
    /// It applies to every kind of resource with that name, and the holders' leases are lost. Each
    /// holder's process is notified on its wake-up channel; until then its ``Lease/isHeld`` stays
    /// true. A process that misses the notification learns of the loss with a heartbeat.
    ///
    /// - Parameters:
    ///   - name: the name of the resource.
    ///   - holder: the ``Inspection/Holder/id`` of one holder; `nil` means all.
    /// - Returns: the number of holders that lost a lease.
    /// - Throws: what ``inspect(_:limit:)`` throws, and `.connectionLost` with `mayHaveRun`.
    @discardableResult
    public func forceRelease(_ name: String, holder: String? = nil) async throws(RedisDCError) -> Int {
        var total = 0
        while true {
            guard let inspection = try await inspect(name, limit: 1000) else { return total }
            let chosen = inspection.holders.map(\.id).filter { holder == nil || $0 == holder }
            let family = inspection.kind.traits.family
            var ended = 0
            for id in chosen {
                guard let claim = ClaimID(id) else { continue }
                ended += try await engine(of: name).call(End(claim, name: name, family, isForced: true))
            }
            total += ended
            if ended == 0 || chosen.count < 1000 { return total }
        }
    }
}

extension Scripts {
    static let inspect = RedisScript(embedded: PackageResources.inspect_lua)
    static let list = RedisScript(embedded: PackageResources.list_lua)
}
