// Barbershop: there are so many places in the shop, one of them in the barber's chair. Who finds the shop full goes away
// again. The barber sleeps while nobody is there. Whoever sits in the chair has their hair cut, and leaves when it is done.
//
// The places and the chair are leases. Who sits meets the barber at an exchanger and learns the number of the haircut, whose
// end is a latch. Under kill -9: a customer's place is free when its session is over. A barber says the number before the
// meeting, and its next life begins with opening the latch of the last one, whose customer leaves, shorn or not.
import RedisDC

struct Barbershop: Problem {
    let name = "barbershop"
    let title = "A barber, one customer in the chair, and so many places to wait"
    let chapter = Chapter.lessClassical
    let processes = 5
    private let places = 3

    func cast(_ processes: Int) -> [Role] {
        [
            Role("barber", 1, roundEnd: "calls", play: barber),
            Role("customer", processes - 1, roundEnd: "leaves", play: customer),
        ]
    }

    func barber(_ me: Player) async throws {
        let meeting = try me.coordinator.exchanger("meeting", of: String.self)
        for haircut in try await me.roundsUntilAllAreDone() {
            try await done(me, haircut - 1).countDown(id: "barber")
            try await me.log("calls", haircut)
            let customer = try await meeting.exchange("\(haircut)").others[0]
            try await me.log("cuts", haircut, customer)
            try await me.work()
            try await me.log("finishes", haircut)
        }
    }

    func customer(_ me: Player) async throws {
        let door = try me.coordinator.mutex("door")
        let shop = try me.coordinator.semaphore("shop", permits: places)
        let chair = try me.coordinator.mutex("chair")
        let meeting = try me.coordinator.exchanger("meeting", of: String.self)
        while true {
            let place = try await door.withLock { _ in try await enter(me, shop) }
            if let place {
                try await chair.withLock { _ in
                    let haircut = Int(try await meeting.exchange(me.name).others[0]) ?? 0
                    try await me.log("sits", haircut)
                    try await done(me, haircut).wait()
                    try await me.log("leaves", haircut)
                }
                try await place.release()
            }
            // The customer comes again later.
            try await Task.sleep(for: .milliseconds(3))
        }
    }

    private func enter(_ me: Player, _ shop: Semaphore) async throws -> Lease? {
        try await me.log("comes")
        do {
            let place = try await shop.acquireLease(timeout: .zero)
            try await me.log("enters")
            return place
        } catch let error as RedisDCError where error.code == .timedOut {
            try await me.log("balks")
            return nil
        }
    }

    private func done(_ me: Player, _ haircut: Int) throws -> Latch {
        try me.coordinator.latch("haircut \(haircut) is done", count: 1)
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.atMost(places, "never more in the shop than there are places", from: "enters", to: "leaves"),
            log.balksOnlyWhenFull(places: places, leaves: "leaves"),
            log.atMost(1, "one in the chair", from: "sits", to: "leaves"),
            haircuts(log),
        ]
    }

    private func haircuts(_ log: Log) -> Invariant {
        var invariant = Invariant("the barber cuts the hair of who sits, and they leave when it is done", unit: "lines")
        var customers: [Int: String] = [:]
        // What is done, or was ended by the barber's death.
        var ended: Set<Int> = []
        var called = 0
        for (line, entry) in log.entries.enumerated() {
            let haircut = entry.number ?? 0
            switch entry.event {
            case "calls": called = haircut
            case "finishes": ended.insert(haircut)
            case Entry.killed: if entry.role == "barber" { ended.insert(called) }
            case "cuts", "sits":
                invariant.checked += 1
                let customer = entry.event == "cuts" ? entry.note : entry.player
                let other = customers.updateValue(customer, forKey: haircut) ?? customer
                // Who sits may say so late.
                let isCalled = entry.event == "cuts" ? haircut == called : haircut <= called
                if other != customer { invariant.violate(line, entry, "\(other) has it") }
                if !isCalled { invariant.violate(line, entry, "called: \(called)") }
            case "leaves":
                if !ended.contains(haircut) { invariant.violate(line, entry, "it is not done") }
            default: break
            }
        }
        return invariant
    }
}

extension Log {
    /// Who goes away has found so many places taken; with the lines `comes`, then `enters` or `balks`, all said by one at a
    /// time. Who has left may have had the place until its next line, and who was killed for some time yet.
    func balksOnlyWhenFull(places: Int, leaves: String) -> Invariant {
        var invariant = Invariant("nobody goes away when there is a place", unit: "visits")
        var inside: Set<String> = []
        var leaving: Set<String> = []
        var dead = 0
        // What was taken at most since the last one came.
        var taken = 0
        for (line, entry) in entries.enumerated() {
            if entry.event == Entry.killed { dead = 1 }
            if entry.event != leaves { leaving.remove(entry.player) }
            switch entry.event {
            case "comes": taken = inside.union(leaving).count + dead
            case "enters":
                invariant.checked += 1
                inside.insert(entry.player)
            case leaves:
                inside.remove(entry.player)
                leaving.insert(entry.player)
            case Entry.killed: inside.remove(entry.player)
            case "balks":
                invariant.checked += 1
                if taken < places { invariant.violate(line, entry, "\(taken) of \(places) were taken") }
            default: break
            }
        }
        return invariant
    }
}
