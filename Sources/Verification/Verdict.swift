// The verdict on a history.

/// The verdict: for each promise how often it was checked and what contradicts it.
package struct Verdict: Sendable, Encodable {
    /// The result for a promise or for all.
    package enum Result: String, Sendable, Encodable {
        case held
        case violated
        /// Nothing that happened could have contradicted the promise.
        case notChecked = "not checked"
    }

    /// The result for one promise.
    package struct Row: Sendable, Encodable {
        package var promise: Promise
        package var sentence: String
        package var checks: Int
        package var announced: Int
        package var undecided: Int
        package var violations: Int
        package var result: Result
    }

    package let result: Result
    /// How often more holders believed to hold a lock or permits than may, whether they were notified or not.
    package let overlaps: Int
    package let promises: [Row]
    package let statistics: Statistics
    /// The first violations of each promise, in words.
    package let violations: [String]
    /// The first contradictions of each promise that are no violations, in words.
    package let explained: [String]

    /// The maximum number of contradictions in words for each promise.
    static let maxTexts = 5

    init(_ findings: [Finding], _ statistics: Statistics) {
        self.statistics = statistics
        overlaps = findings.reduce(0) { sum, finding in
            guard finding.promise == .exclusion || finding.promise == .permits else { return sum }
            return sum + finding.announced + finding.undecided + finding.violations.count
        }
        promises = findings.map { finding in
            let result: Result =
                !finding.violations.isEmpty ? .violated : finding.checks == 0 ? .notChecked : .held
            return Row(
                promise: finding.promise, sentence: finding.promise.sentence, checks: finding.checks,
                announced: finding.announced, undecided: finding.undecided, violations: finding.violations.count,
                result: result)
        }
        violations = findings.flatMap { $0.violations.prefix(Self.maxTexts) }
        explained = findings.flatMap { $0.explained.prefix(Self.maxTexts) }
        let results = promises.map(\.result)
        result = results.contains(.violated) ? .violated : results.allSatisfy { $0 == .held } ? .held : .notChecked
    }
}

/// The operations, failovers and losses of a run, in numbers.
package struct Statistics: Sendable, Encodable {
    /// The number of operations that succeeded.
    package private(set) var operations = 0
    /// The number of operations that failed because Redis did not answer or refused them.
    package private(set) var failures = 0
    package private(set) var failovers = 0
    package private(set) var kills = 0
    /// The notifications of losses: of claims, of sessions, of data, and gaps of readers.
    package private(set) var claimsLost = 0
    package private(set) var sessionsLost = 0
    package private(set) var dataLost = 0
    /// The operations that processes have carried out again.
    package private(set) var repaired = 0
    package private(set) var gaps = 0
    /// In seconds, the longest time for which a signal or a send waited for Redis, or in which nothing succeeded.
    package private(set) var longestWithoutService = 0.0

    private var calls: [Announcements.Claim: UInt64] = [:]
    private var lastSuccess: UInt64?

    private enum CodingKeys: String, CodingKey {
        case operations, failures, failovers, kills, claimsLost, sessionsLost, dataLost, repaired, gaps,
            longestWithoutService
    }

    package init() {}

    package init(_ events: [Event]) {
        for event in events { add(event) }
    }

    /// The number of notifications of losses.
    package var announcements: Int { claimsLost + sessionsLost + dataLost + gaps }

    /// Counts an event. Events must come in the order of their times.
    package mutating func add(_ event: Event) {
        // Operations of the process that has started the others, before and after the run, are no service.
        if event.process == 0, event.kind != .failover, event.kind != .killed { return }
        switch event.kind {
        case .call where event.verb == .signal || event.verb == .send:
            calls[Announcements.Claim(process: event.process, operation: event.operation ?? 0)] = event.time
        case .end:
            let began = calls.removeValue(
                forKey: Announcements.Claim(process: event.process, operation: event.operation ?? 0))
            guard event.outcome == .ok else { return }
            if let began { waited(from: began, to: event.time) }
            succeeded(event.time)
        case .enter, .got: succeeded(event.time)
        case .failed: failures += 1
        case .failover: failovers += 1
        case .killed: kills += 1
        case .lost: claimsLost += 1
        case .sessionLost: sessionsLost += 1
        case .dataLost: dataLost += 1
        case .repaired: repaired += event.note.flatMap { Int($0) } ?? 0
        case .gap: gaps += 1
        default: break
        }
    }

    private mutating func succeeded(_ time: UInt64) {
        operations += 1
        if let lastSuccess { waited(from: lastSuccess, to: time) }
        lastSuccess = time
    }

    private mutating func waited(from start: UInt64, to end: UInt64) {
        if end > start { longestWithoutService = max(longestWithoutService, Double((end - start) / 1_000_000) / 1000) }
    }
}
