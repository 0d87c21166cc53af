// Search, insert, delete: any number of searchers may use a list together. One inserter may use it
// at the same time as searchers. A deleter is alone. As in the book, a deleter may starve, so all
// stop after a number of rounds.
//
// If a process is killed: all locks are leases. A light switch removes a dead member when its
// session has expired.
import RedisDC

struct SearchInsertDelete: Problem {
    let name = "search-insert-delete"
    let title = "Searchers together, one inserter among them, a deleter alone"
    let chapter = Chapter.notSoClassical
    let processes = 6

    func cast(_ processes: Int) -> [Role] {
        [
            Role("searcher", processes - 2 * (processes / 3), roundEnd: "finds", play: searcher),
            Role("inserter", processes / 3, roundEnd: "inserted", play: inserter),
            Role("deleter", processes / 3, roundEnd: "deleted", play: deleter),
        ]
    }

    func searcher(_ me: Player) async throws {
        let searchers = try me.coordinator.mutex("no searcher").lightSwitch("searchers")
        for round in try await me.rounds() {
            try await searchers.withLock { _ in
                try await me.log("searches", round)
                try await me.work()
                try await me.log("finds", round)
            }
            try await me.work()
        }
    }

    func inserter(_ me: Player) async throws {
        let inserters = try me.coordinator.mutex("no inserter").lightSwitch("inserters")
        let alone = try me.coordinator.mutex("one inserter")
        for round in try await me.rounds() {
            try await inserters.withLock { _ in
                try await alone.withLock { _ in
                    try await me.log("inserts", round)
                    try await me.work()
                    try await me.log("inserted", round)
                }
            }
            try await me.work()
        }
    }

    func deleter(_ me: Player) async throws {
        let mutexes = [try me.coordinator.mutex("no searcher"), try me.coordinator.mutex("no inserter")]
        for round in try await me.rounds() {
            try await me.coordinator.withLocks(mutexes) { _ in
                try await me.log("deletes", round)
                try await me.work()
                try await me.log("deleted", round)
            }
            try await me.work()
        }
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.inside(
                "one inserter at a time, and a deleter alone", from: ["searches", "inserts", "deletes"],
                to: ["finds", "inserted", "deleted"]
            ) { inside, newcomer in
                inside.allSatisfy { one in
                    one.event != "deletes" && newcomer.event != "deletes"
                        && (one.event == "searches" || newcomer.event == "searches")
                }
            }
        ]
    }
}
