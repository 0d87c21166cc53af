// Queue: leaders and followers arrive at a ball at any time. Each waits for one of the other kind,
// and the two dance; several pairs may dance at the same time.
//
// The book has a queue for each kind, and each process signals the other's queue. Here the first
// process of each queue goes to a meeting point, which is reserved for the two until they have met.
// If a process is killed: the head of a queue is a lease, and a process that dies at the meeting
// point has met no partner. If it dies after the meeting, its partner dances alone.
import RedisDC

struct Queue: Problem {
    let name = "queue"
    let title = "Leaders and followers wait for each other and dance in pairs"
    let chapter = Chapter.basics
    let processes = 4

    func cast(_ processes: Int) -> [Role] {
        let leaders = processes / 2
        return [
            Role("leader", leaders, roundEnd: "dances") { try await dancer($0, kind: "leader") },
            Role("follower", processes - leaders, roundEnd: "dances") { try await dancer($0, kind: "follower") },
        ]
    }

    func dancer(_ me: Player, kind: String) async throws {
        let head = try me.coordinator.mutex("head of the \(kind) queue")
        let meetingPoint = try me.coordinator.exchanger("meeting point", of: String.self)
        while true {
            try await me.log("comes")
            try await head.withLock { _ in
                let meeting = try await meetingPoint.exchange(me.name)
                try await me.log("dances", Int(meeting.arrival.generation) + 1, meeting.others[0])
            }
            try await me.work()
        }
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.groups(of: "dances", size: 2, "a leader and a follower, pair after pair") { dancers in
                dancers == ["leader": 1, "follower": 1]
            },
            partners(log),
        ]
    }

    private func partners(_ log: Log) -> Invariant {
        var invariant = Invariant("everyone dances with one who has arrived, and the two agree", unit: "dances")
        var pairs: [Int: Set<String>] = [:]
        var comes: [String: Int] = [:]
        var dances: [String: Set<Int>] = [:]
        for (line, entry) in log.entries.enumerated() {
            if entry.event == "comes" { comes[entry.player, default: 0] += 1 }
            guard entry.event == "dances", let number = entry.number else { continue }
            invariant.checked += 1
            let pair: Set = [entry.player, entry.note]
            if let other = pairs.updateValue(pair, forKey: number), other != pair {
                invariant.violate(line, entry, "the pair is \(other.sorted().joined(separator: ", "))")
            }
            for dancer in pair {
                dances[dancer, default: []].insert(number)
                if dances[dancer, default: []].count > comes[dancer, default: 0] {
                    invariant.violate(line, entry, "\(dancer) has not come for it")
                }
            }
        }
        return invariant
    }
}
