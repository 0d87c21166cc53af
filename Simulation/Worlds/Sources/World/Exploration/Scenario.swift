// The tiny worlds that are explored exhaustively: what their tasks do, and the faults.
@testable import RedisDC

/// A world that is small enough to try all orders of its events.
public struct Scenario: Sendable {
    /// The name, which begins with that of the family.
    public let name: String
    /// What its tasks do, in words.
    public let summary: String
    /// The number of processes.
    public let processes: Int
    /// The number of tasks of each process.
    public let tasks: Int
    /// The faults.
    public var budget: Exploration.Budget
    /// What a task does once.
    let body: @Sendable (SimulatedTask) async throws -> Void

    init(
        _ name: String, _ summary: String, processes: Int = 2, tasks: Int = 1,
        budget: [WritableKeyPath<Exploration.Budget, Int>] = [],
        _ body: @escaping @Sendable (SimulatedTask) async throws -> Void
    ) {
        (self.name, self.summary, self.processes, self.tasks, self.body) = (name, summary, processes, tasks, body)
        self.budget = Exploration.Budget()
        for kind in budget { self.budget[keyPath: kind] += 1 }
    }

    /// The family of primitives.
    public var family: String { String(name.prefix { $0 != "-" }) }

    /// Makes a world that has not begun.
    func world(alteredScripts: @escaping (String) -> String) -> World {
        var plan = World.Plan()
        (plan.processes, plan.tasks, plan.resources, plan.ledgerInterval) = (processes, 0, 1, 1)
        plan.faults = .none
        if family == "mailbox" {
            (plan.mail.tasks, plan.mail.boxes, plan.mail.devices) = (1, 1, 1)
            (plan.mail.hasLimits, plan.mail.hasInbox) = (false, false)
        }
        return World(seed: 1, plan: plan, alteredScripts: alteredScripts)
    }

    /// Begins the tasks of a process.
    func begin(in process: SimulatedProcess) {
        for _ in 0..<tasks { SimulatedTask(of: process).begin(body) }
    }
}

extension Scenario {
    /// All scenarios.
    public static let all: [Scenario] = [
        Scenario("lock-calm", "each process acquires and releases a mutex") { try await $0.locks() },
        Scenario("lock-break", "the same, with a fault", budget: [\.breaks]) { try await $0.locks() },
        Scenario("lock-death", "the same, and one dies", budget: [\.deaths]) { try await $0.locks() },
        Scenario("lock-both", "the same, with both faults", budget: [\.breaks, \.deaths]) { try await $0.locks() },
        Scenario("lock-cancel", "the same; a wait is cancelled", budget: [\.cancels, \.breaks]) {
            try await $0.locks()
        },
        Scenario("lock-timeout", "the same; waits have a time limit", budget: [\.timers, \.breaks]) {
            try await $0.locks(timeout: .milliseconds(1))
        },
        Scenario("lock-failover", "the same; a replica becomes the master", budget: [\.promotions]) {
            try await $0.locks()
        },
        Scenario("semaphore-calm", "2 permits: a batch of 2 against 2 tasks that take 1", tasks: 2, budget: []) {
            try await $0.usesPermits()
        },
        Scenario("semaphore-break", "the same, with a fault", tasks: 2, budget: [\.breaks]) {
            try await $0.usesPermits()
        },
        Scenario("semaphore-death", "the same, with a death", tasks: 2, budget: [\.deaths]) {
            try await $0.usesPermits()
        },
        Scenario("semaphore-cancel", "the same; a wait is cancelled", tasks: 2, budget: [\.cancels]) {
            try await $0.usesPermits()
        },
        Scenario("cohort-calm", "a mutex kept by one process for 2 tasks, and wanted by another one", tasks: 2) {
            try await $0.takesTurn()
        },
        Scenario("cohort-break", "the same, with a fault", tasks: 2, budget: [\.breaks]) { try await $0.takesTurn() },
        Scenario("cohort-death", "the same, with a death", tasks: 2, budget: [\.deaths]) { try await $0.takesTurn() },
        Scenario("cohort-channel", "the same; wake-ups are lost", tasks: 2, budget: [\.lostChannels]) {
            try await $0.takesTurn()
        },
        Scenario("condition-calm", "one waits for what the other one sets and notifies") {
            try await $0.usesCondition()
        },
        Scenario("condition-break", "the same, with a fault", budget: [\.breaks]) {
            try await $0.usesCondition()
        },
        Scenario("condition-channel", "the same; wake-ups are lost", budget: [\.lostChannels]) {
            try await $0.usesCondition()
        },
        Scenario("barrier-calm", "two parties meet") { try await $0.meets() },
        Scenario("barrier-cancel", "the same, with two faults", budget: [\.breaks, \.cancels]) { try await $0.meets() },
        Scenario("barrier-death", "the same, with a death", budget: [\.breaks, \.deaths]) { try await $0.meets() },
        Scenario("mailbox-calm", "one sends twice, the other one reads") { await $0.mails() },
        Scenario("mailbox-break", "the same, with a fault", budget: [\.breaks]) { await $0.mails() },
        Scenario("mailbox-death", "the same, with a death", budget: [\.deaths]) { await $0.mails() },
        Scenario("mailbox-channel", "the same; wake-ups are lost", budget: [\.lostChannels]) { await $0.mails() },
        Scenario("mailbox-failover", "the same; a replica becomes the master", budget: [\.promotions]) {
            await $0.mails()
        },
    ]
}

extension SimulatedTask {
    /// Lets other events happen.
    private func step() async throws { try await sleep(1) }

    fileprivate func locks(timeout: Duration? = nil) async throws {
        let room = Judge.Room(name: "mutex 0")
        guard let held = try await enter(.mutex("mutex 0"), room, timeout: timeout, isCancelled: false) else { return }
        try await step()
        try await leave(held)
    }

    fileprivate func usesPermits() async throws {
        if process.number == 0, taskNumber == 1 { return }
        let count = process.number == 0 ? 2 : 1
        let resource = Resource(name: "pool 0", kind: .semaphore, permits: 2, policy: "f")
        let room = Judge.Room(name: "pool 0", size: count, capacity: 2)
        let request = Acquire(resource: resource, count: count, mode: .lease)
        guard let held = try await enter(request, room, timeout: nil, isCancelled: false) else { return }
        try await step()
        try await leave(held)
    }

    fileprivate func takesTurn() async throws {
        if process.number == 1, taskNumber == 1 { return }
        let cohort = process.cohort("cohort 0", linger: .milliseconds(30))
        let room = Judge.Room(name: "cohort 0")
        try await turn(of: cohort, room, timeout: nil, isCancelledAfter: nil) { try await step() }
    }

    /// The first process waits until the other one has set a flag. No notification may be lost.
    fileprivate func usesCondition() async throws {
        let flag = world.family(Flag.self)
        let condition = Resource(name: "guard 0#c", kind: .condition, permits: 0)
        while true {
            let room = Judge.Room(name: "guard 0")
            guard let held = try await enter(.mutex("guard 0"), room, timeout: nil, isCancelled: false) else { return }
            try await step()
            if process.number == 1 {
                if process.holds(held.claim) { flag.isSet = true }
                _ = try await call(Signal(condition, count: 1))
                return try await leave(held)
            }
            world.exploration?.reads(flag.isSet, process)
            if flag.isSet { return try await leave(held) }
            finish(held)
            let request = Acquire(resource: condition, failsOnLoss: true, detail: .releases(held.claim))
            _ = try await acquire(request, timeout: nil, isCancelled: false)
            if process.holds(held.claim) { return try await leave(held) }
            world.judge { $0.leave(held.holder, isToldOfLoss: true) }
        }
    }

    fileprivate func meets() async throws {
        let barrier = Resource(name: "barrier 0", kind: .barrier, permits: 2, policy: "o")
        let request = Acquire(resource: barrier, action: .arrive)
        _ = try await arrive(request, parties: 2, timeout: .seconds(30), isCancelled: false)
    }

    fileprivate func mails() async { await process.number == 0 ? sendsTwice() : readsTwo() }
}

/// What one process tells another one, under a mutex.
private final class Flag: FamilyJudge {
    var isSet = false

    init(_ world: World) {}

    func checkEnd(_ ledger: Ledger) {}
}
