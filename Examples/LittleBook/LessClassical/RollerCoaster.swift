// Roller coaster: passengers come again and again, and the car has fewer seats than there are
// passengers. They board when the car loads. The car runs when it is full. All get off when it
// unloads, before it loads again.
//
// The book counts boarders and passes tokens. Here a passenger draws a ticket, which determines its
// ride, and each step of a ride is a latch. If a process is killed, nothing is lost: a latch counts
// each process once, and the next life still has its ticket, finds open latches open, and
// continues. The ride waits for it.
import Hiredis
import RedisDC

struct RollerCoaster: Problem {
    let name = "roller-coaster"
    let title = "The car runs when it is full, and loads when it is empty"
    let chapter = Chapter.lessClassical
    let processes = 5

    func cast(_ processes: Int) -> [Role] {
        [
            Role("car", 1, roundEnd: "rests", play: car),
            Role("passenger", processes - 1, roundEnd: "goes", play: passenger),
        ]
    }

    func car(_ me: Player) async throws {
        for number in try await me.roundsUntilAllAreDone() {
            let ride = try Ride(number, seats: seats(me.counts["passenger"]), me.coordinator)
            try await me.logOnce("loads", number)
            try await ride.loads.countDown(id: me.name)
            try await ride.aboard.wait()
            try await me.logOnce("runs", number)
            try await me.work()
            try await me.logOnce("unloads", number)
            try await ride.unloads.countDown(id: me.name)
            try await ride.ashore.wait()
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
        var doors = Invariant("passengers board when the car loads, and get off when it unloads", unit: "steps")
        var car = Invariant("the car runs when it is full, and loads when it is empty", unit: "loads and runs")
        var state: Entry?
        var aboard: Set<String> = []
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "boards", "unboards":
                doors.checked += 1
                let needed = entry.event == "boards" ? "loads" : "unloads"
                if state?.event != needed || state?.number != entry.number {
                    doors.violate(line, entry, "the last entry of the car: \(state?.action ?? "nothing")")
                }
                if entry.event == "boards" { aboard.insert(entry.player) } else { aboard.remove(entry.player) }
            case "loads", "runs":
                car.checked += 1
                if aboard.count != (entry.event == "runs" ? seats : 0) {
                    car.violate(line, entry, "\(aboard.count) are aboard")
                }
                state = entry
            case "unloads": state = entry
            default: break
            }
        }
        return [doors, car]
    }
}

/// The latches through which a car and its passengers coordinate one ride.
struct Ride {
    let loads, aboard, unloads, ashore: Latch

    init(_ number: Int, seats: Int, _ coordinator: Coordinator) throws {
        loads = try coordinator.latch("ride \(number) loads", count: 1)
        aboard = try coordinator.latch("ride \(number) aboard", count: seats)
        unloads = try coordinator.latch("ride \(number) unloads", count: 1)
        ashore = try coordinator.latch("ride \(number) ashore", count: seats)
    }

    /// Draws a ticket for a round of a passenger, unless it has one, and returns the number of its
    /// ride.
    static func ofTicket(_ me: Player, _ round: Int, seats: Int) async throws -> Int {
        let drawn = (try await me.redis.send("LRANGE", .string(me.key("tickets")), 0, -1).array ?? []).map(\.string)
        let mine = drawn.indices.filter { drawn[$0] == me.name }
        if mine.count >= round { return mine[round - 1] / seats + 1 }
        let ticket = try await me.redis.send("RPUSH", .string(me.key("tickets")), .string(me.name)).integer ?? 0
        return (Int(ticket) - 1) / seats + 1
    }
}
