// A world: processes with the real state machines, a simulated server with the real scripts, a network and a clock.
import SimulatedRedis

@testable import CoordinationBase
@testable import RedisDC

/// A simulated deployment. One random number generator decides everything, so a seed repeats a run exactly.
///
/// Nothing runs at the same time: `run` carries out one event after the other. An event of a process is a packet that
/// arrives, a timer, or a task that goes on.
public final class World {
    let plan: Plan
    var random: Random
    /// The time since the beginning.
    var now: Time = 0
    var agenda = Agenda()
    var servers: Servers
    var processes: [SimulatedProcess] = []
    var judge = Judge()
    /// The judges of families, in the order in which they were first needed.
    private(set) var judges: [any FamilyJudge] = []
    let executor = WorldExecutor()
    /// What tasks do.
    let uses: [Use]
    /// The mailboxes, if the plan has tasks that use them.
    private(set) var mail: MailWorld?
    let namespace = Namespace("world", partitions: 1)
    let keys: PartitionKeys
    /// Whether tasks begin new operations.
    private(set) var isOpen = true
    /// What chooses the order of events, if it is not their time.
    var exploration: Exploration?
    /// The events of interest, the last ones first to be forgotten.
    private(set) var timeline: [String] = []
    /// So many of the last events are kept at least.
    public var lastEventCount = 200
    /// The number of events so far.
    public internal(set) var events = 0
    /// The number of scripts that the server has run.
    var executions = 0
    /// Whether the scripts that the server runs are events of interest.
    public var notesScripts = false
    private var lastLedger: (version: Servers.Version, ledger: Ledger)?
    /// What `redisdc verify --replay` can judge, if it is kept.
    private(set) var history: History?
    /// When the last fault was over, or will be.
    var calmSince: Time = 0
    /// When the server has last lost data.
    var lastLoss: Time = -1_000_000_000
    /// The number of faults so far.
    public internal(set) var faults = 0

    /// Creates a world.
    ///
    /// - Parameter alteredScripts: returns the text of a script that the server runs in place of the library's.
    public init(seed: UInt64, plan: Plan = Plan(), alteredScripts: @escaping (String) -> String = { $0 }) {
        self.plan = plan
        uses = Use.all.filter { plan.uses.contains($0.name) }
        random = Random(seed: seed)
        servers = Servers(alteredScripts: alteredScripts)
        keys = PartitionKeys(namespace, partition: 0)
        if plan.mail.tasks > 0 || plan.services != nil { mail = MailWorld(in: self, seed: seed) }
    }

    /// The violated promises; empty if all were kept.
    public var violations: [String] { judge.violations }

    /// The last events, for a reader.
    public var lastEvents: [String] { timeline }

    /// The number of comparisons with what is promised.
    public var checks: Int { judge.checks }

    /// The virtual time in seconds.
    public var seconds: Double { Double(now) / 1_000_000 }

    /// Keeps the history from now on.
    public func keepHistory() { history = History() }

    /// The lines of the history after the first one; empty if it is not kept.
    public var historyLines: [History.Line] { history?.lines ?? [] }

    /// The first line of the history.
    public func historyHeader(seed: UInt64) -> History.Header {
        let used = Set(uses.map(\.name))
        var families: [String] = []
        if !used.isDisjoint(with: ["mutex", "read-write", "several-locks"]) { families.append("locks") }
        if used.isSuperset(of: ["pool", "tokens"]) { families.append("semaphores") }
        if !used.isDisjoint(with: ["barrier", "exchanger"]) { families.append("barriers") }
        return History.Header(
            seed: seed, ttl: Int(longestTTL / 1000), families: families, isLossless: plan.faults.promotions == 0)
    }

    /// Records something in the history, if it is kept.
    func record(_ event: (inout History) -> Void) { if history != nil { event(&history!) } }

    /// Runs until all tasks have ended, or until a promise is broken.
    public func run() {
        guard let mail else { return runEvents() }
        mail.runtime.use {
            runEvents()
            mail.end()
        }
    }

    private func runEvents() {
        for _ in 0..<plan.processes { addProcess() }
        plan.faults.schedule(in: self)
        let end = Time(plan.seconds) * 1_000_000
        agenda.add(at: end) { $0.close() }
        while judge.violations.isEmpty, let (time, event) = agenda.take() {
            now = max(now, time)
            servers.advance(to: now)
            event(self)
            executor.drain()
            mail?.goOn()
            events += 1
            if events.isMultiple(of: 50) { audit() }
            if !isOpen, events.isMultiple(of: 50), hasEnded { break }
            if now > end + 600_000_000 {
                let left =
                    isIdle
                    ? "claims \(ledger.claims) and sessions \(ledger.sessions) are left"
                    : "tasks still run: \(processes.flatMap(\.waits).prefix(5))\(mail?.jobsLeft ?? "")"
                violation("ten minutes after the last fault, \(left)")
            }
        }
        if judge.violations.isEmpty { checkEnd() }
        executor.end()
    }

    func after(
        _ delay: Time, _ lane: Lane = .world, isNeeded: @escaping () -> Bool = { true },
        _ event: @escaping (World) -> Void
    ) {
        agenda.add(at: now + delay, lane, isNeeded: isNeeded, event)
    }

    func addProcess() {
        let ttl = plan.ttls.randomElement(using: &random)!
        let process = SimulatedProcess(number: processes.count, in: self, ttl: .seconds(ttl))
        processes.append(process)
        record { $0.add("started", process) }
        process.start()
        for _ in 0..<plan.tasks { SimulatedTask(of: process).begin() }
        mail?.add(to: process)
    }

    /// Notes an event of interest.
    func note(_ text: @autoclosure () -> String) {
        timeline.append("\(Double(now) / 1_000_000) \(text())")
        if timeline.count > 2 * lastEventCount { timeline.removeFirst(lastEventCount) }
    }

    /// The number of effects that the server had when a process ended last.
    var lastEnd: Int64 = 0

    /// The records of the server now.
    var ledger: Ledger {
        let version = Servers.Version(servers)
        if let lastLedger, lastLedger.version == version { return lastLedger.ledger }
        let ledger = Ledger(servers.master, keys)
        lastLedger = (version, ledger)
        return ledger
    }

    func judge(_ observation: (inout Judge) -> Void) { observation(&judge) }

    /// The judge of a family.
    func family<J: FamilyJudge>(_ type: J.Type) -> J {
        for case let judge as J in judges { return judge }
        let judge = J(self)
        judges.append(judge)
        return judge
    }

    /// Notes a fault, which is over at this time.
    func disturb(until time: Time) {
        calmSince = max(calmSince, time)
        family(LivenessJudge.self).disturbed(until: time)
    }

    /// Whether nothing went wrong for this long.
    func isCalm(for time: Time) -> Bool { now - calmSince >= time }

    /// Whether the server has lost data, or has set its clock forward a short time ago: then sessions may end, and
    /// records be missing, while processes believe otherwise.
    var mayLoseData: Bool { judge.losses > 0 || judge.isClockAhead(self) }

    /// The longest TTL of a process.
    var longestTTL: Time { Time(plan.ttls.max() ?? 0) * 1_000_000 }

    /// Checks a promise.
    func check(_ isKept: Bool, _ text: @autoclosure () -> String) {
        judge.checks += 1
        if !isKept { violation(text()) }
    }

    func violation(_ text: String) {
        note("VIOLATION: \(text)")
        judge.violations.append(text)
    }

    // MARK: The end

    /// No task begins anything new, and nothing goes wrong any more.
    private func close() {
        isOpen = false
        note("no new operations")
        for process in processes { process.resume() }
    }

    /// Whether all tasks have ended.
    private var isIdle: Bool { processes.allSatisfy { $0.isDead || $0.tasks == 0 } }

    /// Whether all tasks have ended, and all sessions of dead processes are swept.
    var hasEnded: Bool {
        guard isIdle else { return false }
        let ledger = ledger
        return ledger.claims.isEmpty && ledger.sessions.count <= processes.count { !$0.isDead }
    }

    func audit() {
        let ledger = ledger
        for fault in ledger.faults() + ledger.stuck() { violation(fault) }
        for judge in judges { judge.audit(ledger) }
        mail?.checkSleepers()
    }

    func checkEnd() {
        audit()
        let ledger = ledger
        if !ledger.claims.isEmpty { violation("claims are left: \(ledger.claims)") }
        for judge in judges { judge.checkEnd(ledger) }
        let permits = family(TokenJudge.self).initial
        record { $0.close(ledger, permits: permits, now) }
        mail?.checkEnd()
    }
}
