// Dining philosophers, as Tanenbaum has it: nobody waits with a fork in hand. A scoreboard says who hungers and who eats;
// who hungers eats as soon as neither neighbour does, and who stops lets the neighbours look again.
//
// Nobody can wait for each other in a circle, but one can starve between two who eat in turn; so all stop when they have eaten
// often enough, and the verdict says how often one was passed. Under kill -9: who dies eating keeps the neighbours waiting
// until its next life has put the forks down.
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
