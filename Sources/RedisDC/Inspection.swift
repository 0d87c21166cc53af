// Who holds what, since when, and who waits for it.
import Hiredis
import Wakeup

/// A picture of one semaphore or mutex at one moment.
public struct Inspection: Sendable {
    /// Someone who holds it or waits for it.
    public struct Party: Sendable {
        /// The session of the process.
        public var session: String
        /// Names the claim, for ``Coordinator/forceRelease(_:holder:)``.
        public var id: String
        /// How many permits.
        public var count: Int
        /// Since when it holds or waits, in microseconds of Redis's clock. Of a holder it is the fence.
        public var since: UInt64
        /// How long that is.
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
    public var holders: [Party]
    /// First come, first.
    public var waiters: [Party]
}

/// One line of a survey.
public struct SurveyedThing: Sendable {
    public var name: String
    public var kind: String
    public var permits: Int
    public var available: Int
    public var waiters: Int
    /// How long the first waiter has waited.
    public var longestWait: Duration?
}

/// A picture of a namespace.
public struct Survey: Sendable {
    public var sessions: Int
    public var things: [SurveyedThing]
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
        func parties(_ value: RESPValue) -> [Inspection.Party] {
            let cells = value.array ?? []
            return stride(from: 0, to: cells.count - 3, by: 4).map { index in
                let id = cells[index].string ?? ""
                let since = UInt64(max(0, cells[index + 2].number ?? 0))
                return Inspection.Party(
                    session: String(id.prefix { $0 != ":" }), id: id, count: cells[index + 1].number ?? 0, since: since,
                    duration: .microseconds(max(0, numbers[0] - Int(since))), node: cells[index + 3].string ?? "")
            }
        }
        return Inspection(
            name: name, kind: Self.kind(parts[1]), fairness: parts[2].string == "b" ? .barging : .fifo,
            permits: numbers[4], available: numbers[5], signalled: numbers[8], consumed: numbers[9],
            holderCount: numbers[10], waiterCount: numbers[6], holders: parties(parts[11]), waiters: parties(parts[12]))
    }

    /// Looks at everything in the namespace. The cost is proportional to that; it is read in pieces.
    public func survey() async throws(RedisDCError) -> Survey {
        var survey = Survey(sessions: 0, things: [])
        for partition in 0..<place.partitions {
            var cursor = "0"
            repeat {
                let reply = try await look(Scripts.engineSurvey, partition: partition, [.string(cursor)])
                guard let parts = reply.array, parts.count == 4, let next = parts[0].string else { break }
                cursor = next
                if cursor == "0" { survey.sessions += parts[2].number ?? 0 }
                let cells = parts[3].array ?? []
                for index in stride(from: 0, to: cells.count - 5, by: 6) {
                    survey.things.append(
                        SurveyedThing(
                            name: cells[index].string ?? "", kind: Self.kind(cells[index + 1]),
                            permits: cells[index + 2].number ?? 0, available: cells[index + 3].number ?? 0,
                            waiters: cells[index + 4].number ?? 0,
                            longestWait: cells[index + 5].number.map {
                                .microseconds(max(0, (parts[1].number ?? 0) - $0))
                            }))
                }
            } while cursor != "0"
        }
        return survey
    }

    /// Takes a semaphore's permits or a mutex away from its holders, for operators. They are told.
    ///
    /// - Parameter holder: the ``Inspection/Party/id`` of one holder; `nil` takes it away from all.
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
        case let letter?: Thing.Kind(rawValue: letter)?.title ?? "being destroyed"
        case nil: "being destroyed"
        }
    }
}
