// Building H2O: hydrogen and oxygen atoms arrive in any order. Two hydrogens and one oxygen bond,
// and all three do so before any atom of the next molecule does.
//
// Three places, two for hydrogens and one for an oxygen, let exactly one molecule assemble at the
// barrier. An atom that has bonded frees its place. If a process is killed: the places are leases.
// An atom that dies after the barrier has opened and before it has bonded is missing from its
// molecule, which the barrier's generation numbers, and its next life joins another one.
import RedisDC

struct BuildingH2O: Problem {
    let name = "h2o"
    let title = "Two hydrogens and one oxygen bond, molecule after molecule"
    let chapter = Chapter.lessClassical
    let processes = 5

    func cast(_ processes: Int) -> [Role] {
        let oxygens = max(1, processes / 3)
        return [
            Role("hydrogen", processes - oxygens, roundEnd: "bonds") {
                try await atom($0, element: "hydrogen", places: 2)
            },
            Role("oxygen", oxygens, roundEnd: "bonds") { try await atom($0, element: "oxygen", places: 1) },
        ]
    }

    func atom(_ me: Player, element: String, places: Int) async throws {
        let places = try me.coordinator.semaphore("places for \(element)", permits: places)
        let barrier = try me.coordinator.barrier("barrier", parties: 3)
        while true {
            try await places.withPermit { _ in
                let arrival = try await barrier.arriveAndWait()
                try await me.log("bonds", Int(arrival.generation) + 1)
            }
        }
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.groups(of: "bonds", size: 3, "two hydrogens and an oxygen, all before the next molecule") { atoms in
                atoms == ["hydrogen": 2, "oxygen": 1]
            }
        ]
    }
}
