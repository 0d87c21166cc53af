// Phasers: nobody passes without a party that is registered and has not arrived.
@testable import RedisDC

extension SimulatedTask {
    func usePhaser() async throws {
        let phaser = Resource(name: "phaser \(resourceNumber)", kind: .phaser, permits: 0)
        let judge = world.family(PhaserJudge.self)
        let request = Acquire(resource: phaser, action: .register, mode: .lease)
        let isCancelled = world.plan.isHasty && isOne(in: 4)
        guard let lease = try await acquire(request, timeout: nil, isCancelled: isCancelled).grant else { return }
        let party = judge.registers(phaser.name, process, lease.claim)
        for _ in 0..<number(1...3) {
            try await pause(100...world.plan.hold)
            guard process.holds(lease.claim) else { break }
            let begin = judge.arrives(party)
            guard try await arrive(.arrivalOfParty(at: phaser), parties: nil, timeout: longTimeout) != nil else {
                break
            }
            judge.passes(party, since: begin)
        }
        judge.leaves(party)
        let _: Finish = try await world.executor.result { process.release(lease.claim, $0) }
    }
}

/// Knows who is registered, and has not arrived.
private final class PhaserJudge: FamilyJudge {
    private struct Party {
        var name: String
        var process: SimulatedProcess
        var claim: UInt64
        /// Since when it is registered and has not arrived; `nil` while it arrives.
        var idleSince: Time?
    }

    private unowned let world: World
    private var parties: [Int: Party] = [:]
    private var lastParty = 0

    init(_ world: World) { self.world = world }

    func registers(_ name: String, _ process: SimulatedProcess, _ claim: UInt64) -> Int {
        lastParty += 1
        world.note("\(process.name) has registered with \(name) as party \(lastParty)")
        parties[lastParty] = Party(name: name, process: process, claim: claim, idleSince: world.now)
        return lastParty
    }

    func arrives(_ party: Int) -> Time {
        parties[party]?.idleSince = nil
        world.note("party \(party) arrives")
        return world.now
    }

    func passes(_ number: Int, since begin: Time) {
        let own = parties[number]!
        parties[number]?.idleSince = world.now
        world.note("party \(number) has passed")
        if world.mayLoseData { return }
        for other in parties.values where other.name == own.name {
            guard let idle = other.idleSince, idle < begin, !other.process.isDead, other.process.holds(other.claim)
            else { continue }
            world.violation(
                "\(own.process.name) has passed \(own.name) without \(other.process.name): \(number), \(other)")
        }
        world.check(true, "")
    }

    func leaves(_ party: Int) {
        world.note("party \(party) leaves")
        parties[party] = nil
    }

    func checkEnd(_ ledger: Ledger) {}
}
