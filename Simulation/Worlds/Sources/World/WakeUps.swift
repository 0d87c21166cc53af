// Wake-ups that are lost without a break of their connection, and those that another program has published; and whether
// processes learn of their grants all the same.
@testable import RedisDC

/// Checks that a process learns of a grant, or of the end of a wait, by its next heartbeat, when the wake-up was lost.
final class WakeUpJudge: FamilyJudge {
    /// What a heartbeat, the list of claims and a new connection may take.
    private static let limit: Time = 2_000_000

    private unowned let world: World
    /// The waits that the server has ended or granted, and since when their processes could know it.
    private var unknown: [String: Time] = [:]

    init(_ world: World) { self.world = world }

    func audit(_ ledger: Ledger) {
        var found: [String: Time] = [:]
        for process in world.processes where process.isReachable {
            let limit = process.machine.settings.heartbeatInterval.microseconds + Self.limit
            for claim in process.machine.claims.values {
                guard case .queued(let number) = claim.state, let slot = claim.slot else { continue }
                let id = "\(process.machine.life.id):\(slot):\(number)"
                guard let stored = ledger.claims[id], stored.state != "w" else { continue }
                let since = unknown[id] ?? world.now
                found[id] = since
                world.check(
                    world.now <= since + limit,
                    "\(process.name) does not know after \(Double(world.now - since) / 1_000_000) s that \(id) has \(stored.name)"
                )
            }
        }
        unknown = found
    }

    func checkEnd(_ ledger: Ledger) {}
}

extension SimulatedProcess {
    /// Whether nothing keeps it from its requests and wake-ups now.
    var isReachable: Bool {
        isRunning && !isLeaving && channel != nil && link.isConnected && unreachableUntil < world.now
    }

    /// Whether a wake-up is lost on its way. One without a notice is not lost: its content is a hint.
    func losesWakeUp(_ text: String) -> Bool {
        guard world.plan.faults.lostWakeUps > 0, world.isOpen, !text.hasPrefix("0 "), text != "look",
            world.random.isOne(in: world.plan.faults.lostWakeUps)
        else { return false }
        _ = world.family(WakeUpJudge.self)
        world.faults += 1
        world.note("\(name) does not receive \"\(text)\"")
        return true
    }

    /// Receives a message with words at random. It names no claim, because one that does is believed:
    /// docs/failure-model.md, "Forged wake-ups".
    func deliverStrangeMessage() {
        guard channel != nil else { return }
        _ = world.family(WakeUpJudge.self)
        let words = [
            "", "look", "gone", "try", "lost", "recall", "-1", "7/", "/7", "1/2/3", "é", "\0", "\(UInt64.max)", "1e3",
        ]
        // The count of notices may be one that Redis could have sent, unless a wake-up could be lost that it would hide.
        let ahead = machine.isLive ? UInt64(world.random.time(0...3)) : 0
        let count = machine.isLive && world.plan.faults.lostWakeUps == 0 ? machine.live.notices.count + ahead : 0
        var message = [world.random.isOne(in: 2) ? "\(count)" : words.randomElement(using: &world.random)!]
        for _ in 0..<Int.random(in: 0...6, using: &world.random) {
            message.append(words.randomElement(using: &world.random)!)
        }
        let text = message.joined(separator: " ")
        world.note("\(name) receives \"\(text)\" of another program")
        deliver(text)
    }
}
