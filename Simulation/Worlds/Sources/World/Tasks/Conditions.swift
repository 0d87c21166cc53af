// Conditions: a notification wakes as many waiters as it says, and a woken waiter has the mutex again.
@testable import RedisDC

extension SimulatedTask {
    func useCondition() async throws {
        let name = "guard \(resourceNumber)"
        let condition = Resource(name: name + "#c", kind: .condition, permits: 0)
        let judge = world.family(ConditionJudge.self)
        guard let held = try await enter(.mutex(name), Judge.Room(name: name), timeout: longTimeout) else { return }
        try await pause(100...world.plan.hold / 4)
        if isOne(in: 2) {
            let count = isOne(in: 5) ? Semaphore.maxPermits : number(1...2)
            judge.notifies(condition.name, count)
            _ = try await call(Signal(condition, count: count))
            return try await leave(held)
        }
        finish(held)
        let request = Acquire(resource: condition, failsOnLoss: true, detail: .releases(held.claim))
        if try await acquire(request, timeout: longTimeout).grant != nil { judge.wakes(condition.name) }
        if process.holds(held.claim) {
            world.judge { $0.goOn(held.holder) }
            return try await leave(held)
        }
        // The wait has released the mutex.
        world.judge { $0.leave(held.holder, isToldOfLoss: true) }
        let again = try await enter(.mutex(name), Judge.Room(name: name), timeout: nil, isCancelled: false)
        guard let again else { return }
        try await pause(100...world.plan.hold / 4)
        try await leave(again)
    }
}

/// Counts notifications.
private final class ConditionJudge: FamilyJudge {
    private unowned let world: World
    private var notified: [String: Int] = [:]
    private var woken: [String: Int] = [:]

    init(_ world: World) { self.world = world }

    func notifies(_ name: String, _ count: Int) { notified[name, default: 0] += count }

    func wakes(_ name: String) {
        woken[name, default: 0] += 1
        world.check(
            woken[name]! <= notified[name] ?? 0 || world.judge.losses > 0,
            "\(name) has woken \(woken[name]!) waiters, and was notified for \(notified[name] ?? 0)")
    }

    /// A condition without a waiter keeps nothing.
    func checkEnd(_ ledger: Ledger) {
        for (name, resource) in ledger.resources where resource.kind == "c" {
            world.violation("condition \(name) is left: \(resource)")
        }
    }
}
