// Roller coaster with several cars: one car loads at a time and one unloads at a time; several may
// run. They cannot overtake each other, so they unload in the order in which they have loaded. A
// car is empty before the next one unloads.
//
// The rides are numbered, and the cars take turns. The book passes the loading area and the
// unloading area from car to car. Here a car waits for latches of the previous ride. If a process
// is killed: as with one car, a latch counts each process once, and the next life continues its
// ride.
import RedisDC

struct MultiCarRollerCoaster: Problem {
    let name = "multi-car"
    let title = "Several cars run in order, and one at a time loads or unloads"
    let chapter = Chapter.lessClassical
    let processes = 7
    let minProcesses = 4

    func cast(_ processes: Int) -> [Role] {
        [
            Role("car", max(2, processes / 4), roundEnd: "rests", play: car),
            Role("passenger", processes - max(2, processes / 4), roundEnd: "goes", play: passenger),
        ]
    }

    func car(_ me: Player) async throws {
        let cars = me.counts["car"] ?? 1
        func departed(_ ride: Int) throws -> Latch { try me.coordinator.latch("ride \(ride) departed", count: 1) }
        func emptied(_ ride: Int) throws -> Latch { try me.coordinator.latch("ride \(ride) emptied", count: 1) }
        for round in try await me.roundsUntilAllAreDone() {
            let number = (round - 1) * cars + me.index
            let ride = try Ride(number, seats: seats(me.counts["passenger"]), me.coordinator)
            if number > 1 { try await departed(number - 1).wait() }
            try await me.logOnce("loads", number)
            try await ride.loads.countDown(id: me.name)
            try await ride.aboard.wait()
            try await me.logOnce("runs", number)
            try await departed(number).countDown(id: me.name)
            try await me.work()
            if number > 1 { try await emptied(number - 1).wait() }
            try await me.logOnce("unloads", number)
            try await ride.unloads.countDown(id: me.name)
            try await ride.ashore.wait()
            try await me.logOnce("empties", number)
            try await emptied(number).countDown(id: me.name)
            try await me.log("rests", number)
        }
    }

    func passenger(_ me: Player) async throws {
        let seats = seats(me.counts["passenger"])
        for round in try await me.roundsUntilAllAreDone() {
            let number = try await Ride.ofTicket(me, round, seats: seats)
            let ride = try Ride(number, seats: seats, me.coordinator)
            try await ride.loads.wait()
            try await me.logOnce("boards", number)
            try await ride.aboard.countDown(id: me.name)
            try await ride.unloads.wait()
            try await me.logOnce("unboards", number)
            try await ride.ashore.countDown(id: me.name)
            try await me.log("goes", number)
        }
    }

    private func seats(_ passengers: Int?) -> Int { max(1, (passengers ?? 0) / 2) }

    func check(_ log: Log) -> [Invariant] {
        let seats = seats(log.count(of: "passenger"))
        var order = Invariant(
            "cars load one at a time and unload one at a time, in the same order", unit: "loads and unloads")
        var doors = Invariant("passengers board the car that loads, and get off the one that unloads", unit: "steps")
        var full = Invariant("a car runs when it is full, and is empty before the next one unloads", unit: "rides")
        var (loading, unloading) = (Area(), Area())
        var aboard: [Int: Int] = [:]
        for (line, entry) in log.entries.enumerated() {
            let ride = entry.number ?? 0
            switch entry.event {
            case "loads", "unloads":
                order.checked += 1
                let isFree = entry.event == "loads" ? loading.enter(ride) : unloading.enter(ride)
                if !isFree { order.violate(line, entry, "it is not its turn") }
            case "boards", "unboards":
                doors.checked += 1
                let isThere = entry.event == "boards" ? loading.car == ride : unloading.car == ride
                if !isThere { doors.violate(line, entry, "the car is not there") }
                aboard[ride, default: 0] += entry.event == "boards" ? 1 : -1
            case "runs", "empties":
                full.checked += 1
                if aboard[ride, default: 0] != (entry.event == "runs" ? seats : 0) {
                    full.violate(line, entry, "\(aboard[ride, default: 0]) are aboard")
                }
                if entry.event == "runs" { loading.car = nil } else { unloading.car = nil }
            default: break
            }
        }
        return [order, doors, full]
    }

    /// An area for one car at a time, entered once by each car, in order.
    private struct Area {
        var car: Int?
        var last = 0

        mutating func enter(_ ride: Int) -> Bool {
            defer { (car, last) = (ride, ride) }
            return car == nil && ride == last + 1
        }
    }
}
