// Reusable barrier: no process passes the critical point before all have arrived at the rendezvous,
// round after round, and none laps the others. The book builds it from two turnstiles; here it is a
// primitive.
//
// If a process is killed while it waits, it counts as arrived until its session has expired, and is
// then removed. If it is killed after the barrier has opened, its next life takes part in the next
// round. So the barrier's generation numbers the rounds.
import RedisDC

struct ReusableBarrier: Problem {
    let name = "reusable-barrier"
    let title = "Nobody proceeds before all have arrived, round after round"
    let chapter = Chapter.basics
    let processes = 4

    func cast(_ processes: Int) -> [Role] { [Role("thread", processes, roundEnd: "passes", play: thread)] }

    func thread(_ me: Player) async throws {
        let barrier = try me.coordinator.barrier("barrier", parties: me.counts["thread"] ?? 0)
        while true {
            try await me.work()
            try await me.log("comes")
            let arrival = try await barrier.arriveAndWait()
            try await me.log("passes", Int(arrival.generation) + 1)
        }
    }

    func check(_ log: Log) -> [Invariant] {
        var invariant = Invariant("nobody passes before all have arrived", unit: "passes")
        var waiting: Set<String> = []
        var opened = 0
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "comes": waiting.insert(entry.player)
            // The arrival of its former life was removed, or was used by an opening.
            case Entry.back: waiting.remove(entry.player)
            case "passes":
                invariant.checked += 1
                // The first process to pass shows that the barrier has opened. An arrival counts for one opening.
                if entry.number == opened + 1 {
                    let absent = log.players.filter { !waiting.contains($0) }
                    if !absent.isEmpty {
                        invariant.violate(line, entry, "not arrived: \(absent.joined(separator: ", "))")
                    }
                    (waiting, opened) = ([], opened + 1)
                } else if entry.number != opened {
                    invariant.violate(line, entry, "it has opened \(opened) times")
                }
            default: break
            }
        }
        invariant.remark = "opened \(opened) times"
        return [invariant]
    }
}
