// Latches: one opens when it was counted down as often as it should be, and not before.
@testable import RedisDC

extension SimulatedTask {
    /// Counts down, waits or participates. After a latch has opened or broken, the next one is used.
    func useLatch() async throws {
        let judge = world.family(LatchJudge.self)
        let latch = judge.current(resourceNumber)
        let name = latch.name
        switch number(0...4) {
        case 0, 1:
            let id = isOne(in: 2) ? ["x", "y"].randomElement(using: &world.random) : nil
            let least = judge.certain(name)
            judge.begins(name, id)
            let result = try await call(CountDown(latch: latch, id: id))
            guard case .done(let remaining, _)? = result.answer else { return judge.sees(name, result.error) }
            judge.counts(name, id)
            judge.sees(name, remaining: remaining, certain: least)
        case 2, 3:
            let result = try await acquire(Acquire(resource: latch), timeout: timeout)
            if result.grant != nil { judge.opens(name) } else { judge.sees(name, result.error) }
        default: try await participate(latch, judge)
        }
    }

    private func participate(_ latch: Resource, _ judge: LatchJudge) async throws {
        let request = Acquire(resource: latch, action: .register, mode: .lease, failsOnLoss: true)
        let party = judge.registers(latch.name, process)
        guard let lease = try await acquire(request, timeout: nil, isCancelled: false).grant else { return }
        judge.participates(party, lease.claim)
        try await pause(100...world.plan.hold)
        judge.releases(party)
        let result: Finish = try await world.executor.result { process.release(lease.claim, $0) }
        if result.error == nil { judge.hasReleased(party) }
    }
}

/// Counts what may have counted latches down.
private final class LatchJudge: FamilyJudge {
    private struct Latch {
        var resource: Resource
        /// The ids that have certainly counted, or may have; without an id, the number.
        var ids: Set<String> = []
        var possibleIDs: Set<String> = []
        var anonymous = 0
        var possibleAnonymous = 0
        var certain: Int { ids.count + anonymous }
        var possible: Int { possibleIDs.count + possibleAnonymous }
    }

    private struct Participant {
        var name: String
        var process: SimulatedProcess
        var sessionEnds: Int
        /// While it certainly participates.
        var claim: UInt64?
    }

    private static let count = 3
    private unowned let world: World
    private var latches: [String: Latch] = [:]
    private var current: [Int: Int] = [:]
    private var participants: [Int: Participant] = [:]
    private var lastParticipant = 0

    init(_ world: World) { self.world = world }

    func current(_ number: Int) -> Resource {
        let version = current[number, default: 0]
        let name = "latch \(number) \(version)"
        // A death counts, or breaks it.
        let policy: Unicode.Scalar = (number + version).isMultiple(of: 2) ? "d" : "f"
        let resource = Resource(name: name, kind: .latch, permits: Self.count, policy: policy)
        if latches[name] == nil { latches[name] = Latch(resource: resource) }
        return resource
    }

    /// The next latch is used instead of this one, sometimes.
    private func ends(_ name: String) {
        let words = name.split(separator: " ").compactMap { Int($0) }
        guard words[1] < 20, world.random.isOne(in: 3) else { return }
        current[words[0]] = max(current[words[0], default: 0], words[1] + 1)
    }

    func certain(_ name: String) -> Int { latches[name]!.certain }

    func begins(_ name: String, _ id: String?) {
        if let id { latches[name]!.possibleIDs.insert(id) } else { latches[name]!.possibleAnonymous += 1 }
    }

    func counts(_ name: String, _ id: String?) {
        if let id { latches[name]!.ids.insert(id) } else { latches[name]!.anonymous += 1 }
    }

    /// Participants that have ended, or may have. The session of a process that is stopped may expire before it knows.
    private func possibleEnds(_ name: String) -> Int {
        participants.values.count {
            $0.name == name
                && ($0.claim.map($0.process.holds) != true || $0.process.isDead || $0.process.isLeaving
                    || $0.sessionEnds != $0.process.sessionEnds)
        }
    }

    func opens(_ name: String) {
        if world.judge.losses > 0 { return }
        let possible = latches[name]!.possible + possibleEnds(name)
        world.check(possible >= Self.count || world.mayLoseData, "\(name) has opened after \(possible) events")
        ends(name)
    }

    func sees(_ name: String, remaining: Int, certain: Int) {
        if world.judge.losses > 0 { return }
        let possible = latches[name]!.possible + possibleEnds(name)
        let (least, most) = (max(0, Self.count - possible), max(0, Self.count - certain))
        world.check(
            least <= remaining && remaining <= most || world.mayLoseData,
            "\(name) has \(remaining) left, expected \(least) to \(most)")
    }

    func sees(_ name: String, _ error: RedisDCError?) {
        guard error?.code == .broken, world.judge.losses == 0 else { return }
        let mayBreak = latches[name]!.resource.policy == "f"
        let isBroken = mayBreak && participants.values.contains { $0.name == name }
        world.check(isBroken, "\(name) is broken, and no participant has died")
        ends(name)
    }

    // MARK: Participants

    func registers(_ name: String, _ process: SimulatedProcess) -> Int {
        lastParticipant += 1
        participants[lastParticipant] = Participant(name: name, process: process, sessionEnds: process.sessionEnds)
        return lastParticipant
    }

    func participates(_ number: Int, _ claim: UInt64) {
        participants[number]!.claim = claim
        participants[number]!.sessionEnds = participants[number]!.process.sessionEnds
    }

    func releases(_ number: Int) { participants[number]!.claim = nil }

    func hasReleased(_ number: Int) {
        latches[participants[number]!.name]!.anonymous += 1
        latches[participants[number]!.name]!.possibleAnonymous += 1
        participants[number] = nil
    }

    func checkEnd(_ ledger: Ledger) {
        if world.judge.hasUnknownLoss { return }
        for (name, latch) in latches.sorted(by: { $0.key < $1.key }) {
            let died = participants.values.contains {
                $0.name == name && $0.claim.map($0.process.holds) == true && $0.process.isDead
            }
            guard let resource = ledger.resources[name] else { continue }
            if died, latch.resource.policy == "f" {
                world.check(resource.kind == "z", "\(name) is not broken, and a participant has died")
            }
            guard resource.kind == "l" else { continue }
            let possible = latch.possible + possibleEnds(name)
            let range = min(latch.certain, Self.count)...max(possible, min(latch.certain, Self.count))
            world.check(
                range.contains(resource.signalled), "\(name) was counted down \(resource.signalled) times, not \(range)"
            )
        }
    }
}
