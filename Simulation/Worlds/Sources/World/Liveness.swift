// What dead processes have held is free in time.
import SimulatedRedis

@testable import RedisDC

/// Checks that the claims of a session are gone a second after its end, when nothing else goes wrong.
///
/// With ``Ledger/stuck()``, which finds a waiter for what is free, a permit of a dead session is granted to the next
/// waiter within the TTL and one second.
final class LivenessJudge: FamilyJudge {
    /// What a script may take, and the time between two audits.
    private static let limit: Time = 1_100_000

    private unowned let world: World
    /// The faults, and when each was over.
    private var faults: [(begin: Time, end: Time)] = []
    /// When sessions have ended by an orderly end of their processes.
    private var left: [String: Time] = [:]
    /// When sessions expire, in the time of the world, by the server's last record before that.
    private var expiries: [String: Time] = [:]

    init(_ world: World) { self.world = world }

    func disturbed(until time: Time) { faults.append((world.now, time)) }

    func hasLeft(_ session: String) { left[session] = world.now }

    func audit(_ ledger: Ledger) {
        let offset = world.servers.master.now - world.now
        for (session, expiry) in ledger.expiries where expiry > 0 {
            expiries[session] = Time(expiry) - offset
            guard let process = process(of: session), world.plan.faults.clockSteps == 0 else { continue }
            world.check(
                Time(expiry) - offset <= world.now + process.ttl,
                "\(session) expires in \(Double(Time(expiry) - offset - world.now) / 1_000_000) s, later than its TTL")
        }
        for (id, claim) in ledger.claims {
            let session = ledger.session(of: id)
            guard let process = process(of: session) else { continue }
            guard let end = left[session] ?? (process.isDead ? expiries[session] : nil),
                world.now > end + Self.limit, isCalm(around: end, but: process)
            else { continue }
            world.violation(
                "\(id) still has \(claim.name), \(Double(world.now - end) / 1_000_000) s after the end of its session")
        }
    }

    private func process(of session: String) -> SimulatedProcess? {
        Int(session.dropFirst().prefix { $0 != "s" }).map { world.processes[$0] }
    }

    /// Whether nothing but the end of this process went wrong since the other ones have last sent a heartbeat.
    private func isCalm(around end: Time, but process: SimulatedProcess) -> Bool {
        let begin = end - 2 * world.longestTTL
        let others = faults.count { $0.end > begin && $0.begin <= world.now }
        return others <= 1 && world.processes.contains { !$0.isDead && !$0.isLeaving && $0.startedAt < begin }
            && world.plan.faults.clockSteps == 0
    }

    func checkEnd(_ ledger: Ledger) {}
}
