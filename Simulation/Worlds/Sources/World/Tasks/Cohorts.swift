// Mutexes of which each process keeps the lease for its tasks: as strict as others, and given away when others wait.
@testable import RedisDC

extension SimulatedTask {
    func useCohort() async throws {
        let number = resourceNumber
        let name = "cohort \(number)"
        let room = Judge.Room(name: name)
        // Some use it without a cohort, and a group excludes it as well.
        switch self.number(0...5) {
        case 0: return try await lease(.mutex(name), room, timeout: isOne(in: 2) ? nil : timeout)
        case 1 where number == 1:
            let resource = Resource(name: name, kind: .mutex, permits: 1)
            var room = room
            room.group = "a"
            let request = Acquire(resource: resource, mode: .group, detail: .group("a"))
            return try await lease(request, room, timeout: timeout)
        default: break
        }
        let cohort = process.cohort(name, linger: number == 0 ? .seconds(20) : .milliseconds(30))
        let time = isOne(in: 4) ? world.random.time(100...1_000_000) : nil
        try await turn(of: cohort, room, timeout: isOne(in: 3) ? nil : timeout, isCancelledAfter: time) {
            try await pause(100...world.plan.hold)
        }
    }

    /// Takes a turn with a mutex that the process keeps for its tasks.
    func turn(
        of cohort: SimulatedCohort, _ room: Judge.Room, timeout: Duration?, isCancelledAfter time: Time?,
        _ hold: () async throws -> Void
    ) async throws {
        let name = room.name
        let result: SimulatedCohort.Begin = try await world.executor.result {
            cohort.lock(timeout: timeout, isCancelledAfter: time, $0)
        }
        guard case .success(let (turn, life)) = result else { return }
        world.note("\(process.name) has a turn of \(name), fence \(turn.fence)")
        world.family(CohortJudge.self).begins(name)
        var holder = 0
        world.judge {
            holder = $0.enter(
                room, fence: turn.fence, process, holds: { cohort.isHeld(turn, life) },
                isStored: { cohort.isStored(turn) })
        }
        cohort.notifyLoss(of: turn) { [world] in world.judge { $0.leave(holder, isToldOfLoss: true) } }
        try await hold()
        world.judge { $0.finish(holder) }
        let isLost: Bool = try await world.executor.result { cohort.release(turn, $0) }
        // After a loss of data, a normal end asks nobody: see `Locality`.
        let isTold = isLost || world.mayLoseData
        world.judge { $0.leave(holder, isToldOfLoss: isTold) }
    }
}

extension SimulatedProcess {
    func cohort(_ name: String, linger: Duration) -> SimulatedCohort {
        if let cohort = cohorts[name] { return cohort }
        let cohort = SimulatedCohort(name, of: self, limit: CohortJudge.limit, linger: linger)
        cohorts[name] = cohort
        return cohort
    }
}

/// Checks that a process gives its mutex away when others wait for it.
final class CohortJudge: FamilyJudge {
    /// The number of turns that may begin while others wait.
    static let limit = 3

    private struct Wait {
        var since: Time
        var turns = 0
        var holder: String
    }

    private unowned let world: World
    private var waits: [String: Wait] = [:]

    init(_ world: World) { self.world = world }

    /// A turn begins.
    func begins(_ name: String) {
        guard var wait = waits[name], isDue(wait) else { return }
        wait.turns += 1
        waits[name] = wait
        world.check(
            wait.turns <= Self.limit + 1, "\(wait.turns) turns of \(name) have begun while another process waits")
    }

    /// Whether the process has learned of the waiter: with its next question at the latest.
    private func isDue(_ wait: Wait) -> Bool {
        let time = world.longestTTL / 3 + 1_000_000
        return world.now - wait.since > time && world.isCalm(for: time + world.longestTTL)
    }

    func audit(_ ledger: Ledger) {
        for (name, resource) in ledger.resources where name.hasPrefix("cohort") {
            let holder = ledger.claims.first { $0.value.name == name && $0.value.state == "h" && $0.value.mode == "k" }
            guard resource.waiting > 0, let holder = holder?.key else {
                waits[name] = nil
                continue
            }
            let session = ledger.session(of: holder)
            let isAwaited = ledger.claims.contains {
                $0.value.name == name && $0.value.state == "w" && ledger.session(of: $0.key) != session
                    && ledger.livingSessions.contains(ledger.session(of: $0.key))
            }
            guard isAwaited else {
                waits[name] = nil
                continue
            }
            if waits[name]?.holder != holder { waits[name] = Wait(since: world.now, holder: holder) }
            checkUse(name, session, waits[name]!)
        }
    }

    /// An unused mutex does not stay with a process while another one waits, of which a message tells.
    private func checkUse(_ name: String, _ session: String, _ wait: Wait) {
        guard world.isCalm(for: 2 * world.longestTTL), let number = Int(session.dropFirst().prefix { $0 != "s" })
        else { return }
        let process = world.processes[number]
        guard !process.isDead, process.machine.life.id == session,
            case .held(let tenure)? = process.cohorts[name]?.machine.state,
            case .lingering(let since) = tenure.use,
            world.now - max(wait.since, since.microseconds) > 200_000
        else { return }
        world.violation("\(process.name) keeps \(name) unused while another process waits")
    }

    func checkEnd(_ ledger: Ledger) {}
}
