// FIFO barbershop: like the barbershop, but customers are served in the order of their arrival.
// Each brings a semaphore of its own and puts it into a queue; the barber takes the first one and
// signals it.
//
// Here the queue is a bounded buffer with as many items as there are places. An item is the name of
// a visit, which has two latches: called and done. If a barber is killed: a visit stays first in
// the queue until its haircut is done, so the next life repeats the haircut. If a customer is
// killed, its visit is served without it, and its next life finds the latches open.
import RedisDC

struct FIFOBarbershop: Problem {
    let name = "fifo-barbershop"
    let title = "The barbershop, with customers served in the order of arrival"
    let chapter = Chapter.lessClassical
    let processes = 5
    private let places = 3

    func cast(_ processes: Int) -> [Role] {
        [
            Role("barber", 1, roundEnd: "finishes", play: barber),
            Role("customer", processes - 1, roundEnd: "leaves", play: customer),
        ]
    }

    private struct Visit: Codable, Sendable {
        var customer: String
        var number: Int

        func latch(_ what: String, _ me: Player) throws -> Latch {
            try me.coordinator.latch("visit \(number) of \(customer) is \(what)", count: 1)
        }
    }

    func barber(_ me: Player) async throws {
        let queue = try me.coordinator.boundedBuffer("queue", of: Visit.self, capacity: places)
        while true {
            try await queue.withItem { visit in
                try await me.log("cuts", visit.number, visit.customer)
                try await visit.latch("called", me).countDown(id: "barber")
                try await me.work()
                try await me.log("finishes", visit.number, visit.customer)
                try await visit.latch("done", me).countDown(id: "barber")
            }
        }
    }

    func customer(_ me: Player) async throws {
        let door = try me.coordinator.mutex("door")
        let queue = try me.coordinator.boundedBuffer("queue", of: Visit.self, capacity: places)
        let last = try await me.ownEntries().last { $0.number != nil }
        var visit = Visit(customer: me.name, number: last?.number ?? 0)
        if let last, ["enters", "sits"].contains(last.event) { try await stay(me, visit) }
        while true {
            visit.number += 1
            let next = visit
            if try await door.withLock({ _ in try await enter(me, next, queue) }) { try await stay(me, next) }
            // The customer returns later.
            try await Task.sleep(for: .milliseconds(3))
        }
    }

    private func enter(_ me: Player, _ visit: Visit, _ queue: BoundedBuffer<Visit>) async throws -> Bool {
        try await me.log("comes", visit.number)
        do {
            try await queue.put(visit, timeout: .zero)
            try await me.log("enters", visit.number)
            return true
        } catch let error as RedisDCError where error.code == .full {
            try await me.log("balks", visit.number)
            return false
        }
    }

    private func stay(_ me: Player, _ visit: Visit) async throws {
        try await visit.latch("called", me).wait()
        try await me.coordinator.mutex("chair").withLock { _ in
            try await me.log("sits", visit.number)
            try await visit.latch("done", me).wait()
            try await me.log("leaves", visit.number)
        }
    }

    func check(_ log: Log) -> [Invariant] {
        var order = Invariant("customers are served in the order of arrival", unit: "haircuts")
        var room = Invariant("never more in the shop than there are places", unit: "visits")
        var balking = Invariant("no customer leaves unserved while a place is free", unit: "visits")
        var leaving = Invariant("nobody leaves before the haircut is done", unit: "visits")
        // The visits that have arrived, were not served and have not left; those of dead customers that may not have entered.
        var (queue, doubtful): ([String], Set<String>) = ([], [])
        var (entered, done): (Set<String>, Set<String>) = ([], [])
        // Until the next entry of the barber, the last customer may still have its place.
        var (inChair, isServedAgain) = ("", false)
        var taken = 0
        for (line, entry) in log.entries.enumerated() {
            let visit = "\(entry.note.isEmpty ? entry.player : entry.note) \(entry.number ?? 0)"
            switch entry.event {
            case "comes":
                taken = queue.count + (inChair.isEmpty ? 0 : 1)
                queue.append(visit)
            case "balks":
                balking.checked += 1
                queue.removeAll { $0 == visit }
                if taken < places { balking.violate(line, entry, "\(taken) of \(places) places were taken") }
            case "enters":
                (room.checked, balking.checked) = (room.checked + 1, balking.checked + 1)
                if !done.contains(visit) { entered.insert(visit) }
                if entered.count > places { room.violate(line, entry, "in the shop: \(entered.sorted())") }
            case "cuts":
                order.checked += 1
                if visit != inChair || !isServedAgain {
                    while let first = queue.first, first != visit, doubtful.contains(first) { queue.removeFirst() }
                    if queue.first != visit {
                        order.violate(line, entry, "first in the queue: \(queue.first ?? "none")")
                    }
                    queue.removeAll { $0 == visit }
                }
                (inChair, isServedAgain) = (visit, false)
            case "finishes":
                done.insert(visit)
                entered.remove(visit)
            case "leaves":
                leaving.checked += 1
                if !done.contains(visit) { leaving.violate(line, entry, "the haircut is not done") }
            case Entry.killed:
                if entry.role == "barber" { isServedAgain = true }
                if let last = queue.last(where: { $0.hasPrefix(entry.player + " ") }) { doubtful.insert(last) }
            default: break
            }
        }
        return [order, room, balking, leaving, log.atMost(1, "at most one in the chair", from: "sits", to: "leaves")]
    }
}
