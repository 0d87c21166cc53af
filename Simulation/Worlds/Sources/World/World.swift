// A world: processes with the real state machines, a simulated server with the real scripts, a network and a clock.
import SimulatedRedis

@testable import CoordinationBase
@testable import RedisDC

/// A simulated deployment. One random number generator decides everything, so a seed repeats a run exactly.
///
/// Nothing runs at the same time: `run` carries out one event after the other. An event of a process is a packet that
/// arrives, a timer, or a task that goes on.
public final class World {
    /// The size of a world and what goes wrong in it.
    public struct Plan: Sendable {
        /// The number of processes at the beginning. One that dies is replaced.
        public var processes = 4
        /// The number of tasks of each process.
        public var tasks = 3
        /// How long tasks begin new operations, in seconds.
        public var seconds = 60
        /// The faults.
        public var faults = Faults()
        /// The part that uses mailboxes.
        public var mail = MailPlan()

        /// Creates a plan.
        public init() {}
    }

    let plan: Plan
    var random: Random
    /// The time since the beginning.
    private(set) var now: Time = 0
    var agenda = Agenda()
    var servers: Servers
    var processes: [SimulatedProcess] = []
    private(set) var judge = Judge()
    /// The mailboxes, if the plan has tasks that use them.
    private(set) var mail: MailWorld?
    let namespace = Namespace("world", partitions: 1)
    let keys: PartitionKeys
    /// Whether tasks begin new operations.
    private(set) var isOpen = true
    /// The events of interest, the last ones first to be forgotten.
    private(set) var timeline: [String] = []
    /// The number of events so far.
    public private(set) var events = 0
    /// The number of scripts that the server has run.
    var executions = 0
    /// The number of faults so far.
    public internal(set) var faults = 0

    /// Creates a world.
    ///
    /// - Parameter alteredScripts: returns the text of a script that the server runs in place of the library's.
    public init(seed: UInt64, plan: Plan = Plan(), alteredScripts: @escaping (String) -> String = { $0 }) {
        self.plan = plan
        random = Random(seed: seed)
        servers = Servers(alteredScripts: alteredScripts)
        keys = PartitionKeys(namespace, partition: 0)
        if plan.mail.tasks > 0 { mail = MailWorld(in: self, seed: seed) }
    }

    /// The violated promises; empty if all were kept.
    public var violations: [String] { judge.violations }

    /// The last events, for a reader.
    public var lastEvents: [String] { timeline }

    /// The number of comparisons with what is promised.
    public var checks: Int { judge.checks }

    /// The virtual time in seconds.
    public var seconds: Double { Double(now) / 1_000_000 }

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
            mail?.goOn()
            events += 1
            if events.isMultiple(of: 50) { audit() }
            if !isOpen, events.isMultiple(of: 50), hasEnded { break }
            if now > end + 600_000_000 {
                violation("tasks still run ten minutes after the last fault: \(processes.flatMap(\.waits).prefix(5))")
            }
        }
        if judge.violations.isEmpty { checkEnd() }
    }

    func after(_ delay: Time, _ event: @escaping (World) -> Void) { agenda.add(at: now + delay, event) }

    func addProcess() {
        let process = SimulatedProcess(number: processes.count, in: self)
        processes.append(process)
        process.start()
        for _ in 0..<plan.tasks { SimulatedTask(of: process).begin() }
        mail?.add(to: process)
    }

    /// Notes an event of interest.
    func note(_ text: @autoclosure () -> String) {
        timeline.append("\(Double(now) / 1_000_000) \(text())")
        if timeline.count > 400 { timeline.removeFirst(200) }
    }

    func judge(_ observation: (inout Judge) -> Void) { observation(&judge) }

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

    /// Whether all tasks have ended, and all sessions of dead processes are swept.
    private var hasEnded: Bool {
        guard processes.allSatisfy({ $0.isDead || $0.tasks == 0 }) else { return false }
        let ledger = Ledger(servers.master, keys)
        return ledger.claims.isEmpty && ledger.sessions.count <= processes.count { !$0.isDead }
    }

    private func audit() {
        for fault in Ledger(servers.master, keys).faults() { violation(fault) }
        mail?.checkSleepers()
    }

    private func checkEnd() {
        audit()
        judge.checkEnd(Ledger(servers.master, keys))
        mail?.checkEnd()
    }
}
