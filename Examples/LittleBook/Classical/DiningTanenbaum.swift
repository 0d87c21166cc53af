// Dining philosophers, Tanenbaum's solution: no philosopher waits while it holds a fork. A
// scoreboard shows who is hungry and who eats. A hungry philosopher eats as soon as neither
// neighbour does, and one that stops lets its neighbours look again.
//
// There is no deadlock, but a philosopher can starve between two neighbours who eat in turn. So all
// stop after a number of rounds, and the report shows how often one was passed. If a process is
// killed while it eats, its neighbours wait until its next life has put the forks down.
import RedisDC

struct Tanenbaum: Problem {
    let name = "dining-tanenbaum"
    let title = "Dining philosophers: both forks at once or none"
    let chapter = Chapter.classical
    let processes = 5

    func cast(_ processes: Int) -> [Role] {
        [Role("philosopher", processes, roundEnd: "stops", play: philosopher)]
    }

    func philosopher(_ me: Player) async throws {
        let seats = me.counts["philosopher"] ?? 0
        let neighbours = [me.index % seats + 1, (me.index + seats - 2) % seats + 1].map { "philosopher-\($0)" }
        let table = try await Scoreboard(me, "table")
        try await table.change([me.name: nil], "thinks", wakes: ["philosopher"])
        for round in try await me.rounds() {
            try await table.turn { table in
                try await table.change([me.name: "hungry"], "hungers", round, wakes: [])
                try await table.wait { states in neighbours.contains { states[$0] == "eating" } ? nil : () }
                try await table.change([me.name: "eating"], "eats", round, wakes: [])
            }
            try await me.work()
            try await table.turn { try await $0.change([me.name: nil], "stops", round, wakes: ["philosopher"]) }
            try await me.work()
        }
    }

    func check(_ log: Log) -> [Invariant] {
        var eating = log.neighboursEatApart()
        let passed = log.overtaking("", asks: "hungers", gets: "eats", limit: .max - 1).remark
        eating.remark += ", " + passed
        return [eating]
    }
}
