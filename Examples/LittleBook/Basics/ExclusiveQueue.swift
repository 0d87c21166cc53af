// Exclusive queue: as the queue of leaders and followers, but only one pair dances at a time, and who proceeds together are
// each other's partners.
//
// There is one place on the floor for a leader and one for a follower. Who has it waits there for the other, and keeps it
// while it dances; so nobody of the next pair can meet before both are done. Under kill -9: the places are leases. Who dies
// in the middle of a dance keeps the next pair waiting until its session is over.
import RedisDC

struct ExclusiveQueue: Problem {
    let name = "exclusive-queue"
    let title = "Leaders and followers go in pairs, one pair at a time"
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
