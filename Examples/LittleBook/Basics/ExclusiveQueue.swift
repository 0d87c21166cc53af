// Exclusive queue: like the queue of leaders and followers, but only one pair dances at a time, and
// the two that proceed together are partners.
//
// The floor has one place for a leader and one for a follower. The holder of a place waits there
// for the other and keeps the place while it dances, so no process of the next pair can meet a
// partner before both have finished. If a process is killed: the places are leases. If it dies
// during a dance, the next pair waits until its session has expired.
import RedisDC

struct ExclusiveQueue: Problem {
    let name = "exclusive-queue"
    let title = "Leaders and followers dance in pairs, one pair at a time"
    let chapter = Chapter.basics
    let processes = 4

    func cast(_ processes: Int) -> [Role] {
        let leaders = processes / 2
        return [
            Role("leader", leaders, roundEnd: "stops") { try await dancer($0, kind: "leader") },
            Role("follower", processes - leaders, roundEnd: "stops") { try await dancer($0, kind: "follower") },
        ]
    }

    func dancer(_ me: Player, kind: String) async throws {
        let place = try me.coordinator.mutex("place of the \(kind)")
        let rendezvous = try me.coordinator.barrier("rendezvous", parties: 2)
        while true {
            try await place.withLock { _ in
                let pair = Int(try await rendezvous.arriveAndWait().generation) + 1
                try await me.log("dances", pair)
                try await me.work()
                try await me.log("stops", pair)
            }
        }
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.groups(of: "dances", size: 2, "a leader and a follower, pair after pair") { dancers in
                dancers == ["leader": 1, "follower": 1]
            },
            log.inside("only one pair dances at a time", from: ["dances"], to: ["stops"]) { dancing, newcomer in
                dancing.allSatisfy { $0.number == newcomer.number }
            },
        ]
    }
}
