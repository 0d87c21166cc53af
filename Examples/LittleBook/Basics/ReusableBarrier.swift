// Reusable barrier: nobody goes past the critical point before all have come to the rendezvous, again and again, and nobody
// laps the others. The book makes it of two turnstiles; here it is a primitive.
//
// Under kill -9: who dies while it waits is taken out when its session is over, and counts until then; who dies after the
// barrier has opened comes to the next one when it is back. So rounds are numbered by the barrier itself.
import RedisDC

struct ReusableBarrier: Problem {
    let name = "reusable-barrier"
    let title = "Nobody goes on before all have come, again and again"
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
        var invariant = Invariant("nobody passes before all have come", unit: "passes")
        var waiting: Set<String> = []
        var opened = 0
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "comes": waiting.insert(entry.player)
            // Its arrival has been taken out, or has been used.
            case Entry.back: waiting.remove(entry.player)
            case "passes":
                invariant.checked += 1
                // The first one to pass shows that it has opened. Each arrival is good for one opening.
                if entry.number == opened + 1 {
                    let absent = log.players.filter { !waiting.contains($0) }
                    if !absent.isEmpty {
                        invariant.violate(line, entry, "not there: \(absent.joined(separator: ", "))")
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
