// Claims that a living process has on the server and has given up.
@testable import RedisDC

/// Checks that a process which has given up a claim knows whether Redis has it, however its requests and their copies arrive:
/// when the request for the claim and that for its end have been answered, either the claim has ended, or another request is
/// to end it. And that within a TTL, in which the process sends three heartbeats, nothing is left of it.
final class OrphanJudge: FamilyJudge {
    private unowned let world: World
    /// The claims that their processes do not know, and since when.
    private var orphans: [String: Time] = [:]

    init(_ world: World) { self.world = world }

    /// Handles the reply to a request of a process, after the process.
    func hasHandledReply(_ process: SimulatedProcess, _ request: EngineRequest) {
        let machine = process.machine
        guard request.session == machine.life.id, machine.isLive, let slot = request.slot else { return }
        let number = request.release?.claim ?? request.number
        guard request.release != nil || request.operation is Acquire, !process.knows(number),
            // Before the comparison on a new connection, it may know less than a new master has.
            process.link.isConnected,
            let claim = world.ledger.claims["\(request.session):\(slot):\(number)"], claim.state != "g"
        else { return }
        world.violation("\(process.name) has \(request.operation.name) by request \(number), and does not know it")
    }

    func audit(_ ledger: Ledger) {
        let processes = Dictionary(uniqueKeysWithValues: world.processes.map { ($0.machine.life.id, $0) })
        var found: [String: Time] = [:]
        for (id, claim) in ledger.claims {
            guard let process = processes[ledger.session(of: id)], process.isReachable, process.machine.isLive,
                let number = ClaimID(id)?.number, !process.knows(number)
            else { continue }
            let since = orphans[id] ?? world.now
            found[id] = since
            world.check(
                world.now <= since + process.ttl,
                "\(process.name) has not known for \(Double(world.now - since) / 1_000_000) s that \(id) has \(claim.name)"
            )
        }
        orphans = found
    }

    func checkEnd(_ ledger: Ledger) {}
}

extension SimulatedProcess {
    /// Whether the process has the claim of the request with this number, or has sent something that decides about it.
    fileprivate func knows(_ number: UInt64) -> Bool {
        let live = machine.live
        if live.claimIDs[number] != nil || live.slots.unconfirmed.values.contains(number) { return true }
        if case .running = live.reconciliation { return true }
        return live.pending.contains { key, entry in
            key == number || entry.confirms == number || entry.purpose.confirmed.contains { $0.number == number }
                || entry.request.operation.ends(number)
        }
    }
}

extension EngineOperation {
    /// Whether it ends the claim with this number.
    fileprivate func ends(_ number: UInt64) -> Bool {
        switch self {
        case let release as Release: release.claim == number
        case let leave as Leave: leave.claim == number
        case let pass as Pass: pass.held.number == number
        case let end as End: end.claim.number == number
        default: false
        }
    }
}
