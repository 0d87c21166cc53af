// Barbershop: the shop has a fixed number of places, one of them in the barber's chair. A customer
// that finds the shop full leaves. The barber sleeps while the shop is empty. The customer in the
// chair leaves when its haircut is done.
//
// The places and the chair are leases. The customer in the chair meets the barber at an exchanger
// and receives the number of the haircut, whose end is a latch. If a customer is killed, its place
// is free when its session has expired. A barber logs the number before the meeting. If it is
// killed, its next life first opens the latch of the last haircut, and that customer leaves,
// whether the haircut was finished or not.
import RedisDC

struct Barbershop: Problem {
    let name = "barbershop"
    let title = "A barber, one customer in the chair, and a limited number of places"
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
            // The customer returns later.
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
            log.atMost(1, "at most one in the chair", from: "sits", to: "leaves"),
            haircuts(log),
        ]
    }

    private func haircuts(_ log: Log) -> Invariant {
        var invariant = Invariant(
            "the barber serves the customer in the chair, who leaves when the haircut is done", unit: "lines")
        var customers: [Int: String] = [:]
        // The haircuts that are done or were ended by the barber's death.
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
                // A customer may log late that it sits.
                let isCalled = entry.event == "cuts" ? haircut == called : haircut <= called
                if other != customer { invariant.violate(line, entry, "it is the haircut of \(other)") }
                if !isCalled { invariant.violate(line, entry, "called: \(called)") }
            case "leaves":
                if !ended.contains(haircut) { invariant.violate(line, entry, "the haircut is not done") }
            default: break
            }
        }
        return invariant
    }
}

extension Log {
    /// Checks that a customer balks only if all places are taken.
    ///
    /// The entries are `comes`, then `enters` or `balks`, by one customer at a time. A customer
    /// that has left may have held its place until its next entry, and a killed one for some time
    /// after its death.
    func balksOnlyWhenFull(places: Int, leaves: String) -> Invariant {
        var invariant = Invariant("no customer leaves unserved while a place is free", unit: "visits")
        var inside: Set<String> = []
        var leaving: Set<String> = []
        var dead = 0
        // The maximum number of places taken since the last customer came.
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
                if taken < places { invariant.violate(line, entry, "\(taken) of \(places) places were taken") }
            default: break
            }
        }
        return invariant
    }
}
