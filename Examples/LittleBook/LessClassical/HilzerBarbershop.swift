// Hilzer's barbershop: several barbers, a chair for each, a sofa, standing room, and one cash
// register. A customer that finds the shop full leaves. The customer that has stood longest takes a
// free seat on the sofa, and the one that has sat longest is served when a barber is free. A
// customer pays any barber after the haircut, one customer at a time. A barber cuts hair, accepts
// payment, or sleeps.
//
// A scoreboard shows the stage and the ticket of every customer. Every process looks for the next
// step that it can do, and does it. If a process is killed: a step is done completely or not at
// all, and the next life continues from the scoreboard.
import RedisDC

struct HilzerBarbershop: Problem {
    let name = "hilzer-barbershop"
    let title = "Hilzer's barbershop: standing room, a sofa, some barbers, one cash register"
    let chapter = Chapter.lessClassical
    let processes = 7
    private let seats = 2

    func cast(_ processes: Int) -> [Role] {
        let barbers = min(3, max(1, processes / 3))
        return [
            Role("barber", barbers) { me in try await go(me) { barber($0, me.name) } },
            Role("customer", processes - barbers, roundEnd: "leaves") { me in
                let places = places(me.counts["customer"] ?? 0)
                try await go(me) { customer($0, me.name, places) }
            },
        ]
    }

    /// One place fewer than customers.
    private func places(_ customers: Int) -> Int { max(1, customers - 1) }

    private func go(_ me: Player, _ next: @escaping @Sendable (Shop) -> Step?) async throws {
        let board = try await Scoreboard(me, "shop")
        while true {
            try await board.turn { turn in
                let step = try await turn.wait { next(Shop($0)) }
                try await turn.change(step.changes, step.event, step.ticket, step.customer, wakes: step.wakes)
            }
            try await me.work()
        }
    }

    @Sendable private func customer(_ shop: Shop, _ me: String, _ places: Int) -> Step? {
        guard let visit = shop.visits[me] else {
            if shop.visits.count >= places { return Step("balks", shop.ticket, [:], wakes: []) }
            let ticket = shop.ticket + 1
            return Step("enters", ticket, [me: "stands \(ticket)", "ticket": "\(ticket)"], wakes: [])
        }
        switch visit.stage {
        case "stands" where shop.first("stands") == me && shop.count("sofa") < seats:
            return Step("sits", visit.ticket, [me: "sofa \(visit.ticket)"], wakes: ["barber", "customer"])
        case "paid": return Step("leaves", visit.ticket, [me: nil], wakes: [])
        default: return nil
        }
    }

    @Sendable private func barber(_ shop: Shop, _ me: String) -> Step? {
        func step(_ event: String, _ customer: String, _ stage: String, wakes: [String]) -> Step {
            let ticket = shop.visits[customer]?.ticket ?? 0
            return Step(event, ticket, [customer: "\(stage) \(ticket) \(me)"], customer, wakes: wakes)
        }
        if let mine = shop.first("chair", of: me) { return step("finishes", mine, "shorn", wakes: ["barber"]) }
        if let mine = shop.first("pays", of: me) { return step("hands", mine, "paid", wakes: ["barber", "customer"]) }
        if let shorn = shop.first("shorn"), shop.count("pays") == 0 { return step("accepts", shorn, "pays", wakes: []) }
        return shop.first("sofa").map { step("cuts", $0, "chair", wakes: ["customer"]) }
    }

    private struct Step: Sendable {
        let event: String
        let ticket: Int
        let changes: [String: String?]
        let customer: String
        let wakes: [String]

        init(_ event: String, _ ticket: Int, _ changes: [String: String?], _ customer: String = "", wakes: [String]) {
            (self.event, self.ticket, self.changes, self.customer) = (event, ticket, changes, customer)
            self.wakes = wakes
        }
    }

    private struct Shop: Sendable {
        /// The state of each customer: for `customer-3`, `sofa 17` or `chair 17 barber-1`.
        let visits: [String: (stage: String, ticket: Int, barber: String)]
        let ticket: Int

        init(_ board: [String: String]) {
            ticket = Int(board["ticket"] ?? "") ?? 0
            visits = board.filter { $0.key != "ticket" }.mapValues { state in
                let words = state.split(separator: " ").map { String($0) } + ["", "", ""]
                return (words[0], Int(words[1]) ?? 0, words[2])
            }
        }

        func count(_ stage: String) -> Int { visits.values.count { $0.stage == stage } }
        func first(_ stage: String, of barber: String? = nil) -> String? {
            visits.filter { $0.value.stage == stage && barber ?? $0.value.barber == $0.value.barber }
                .min { $0.value.ticket < $1.value.ticket }?.key
        }
    }

    func check(_ log: Log) -> [Invariant] {
        let stages = ["enters", "sits", "cuts", "finishes", "accepts", "hands", "leaves"]
        let places = places(log.count(of: "customer"))
        var way = Invariant("every customer sits, is served, pays and leaves, in this order", unit: "steps")
        var order = Invariant("customers sit down and are served in the order of arrival", unit: "steps")
        var room = Invariant("never more in the shop or on the sofa than there are places", unit: "steps")
        var balking = Invariant("no customer leaves unserved while a place is free", unit: "visits")
        var busy = Invariant("a barber does one thing at a time, and one at a time accepts payment", unit: "steps")
        // The stage of each ticket; the last ticket of each event; the present work of each barber.
        var (far, last): ([Int: Int], [String: Int]) = ([:], [:])
        var work: [String: Entry] = [:]
        func count(_ event: String) -> Int { far.values.count { stages[$0] == event } }
        for (line, entry) in log.entries.enumerated() {
            if ["enters", "balks"].contains(entry.event) { balking.checked += 1 }
            if entry.event == "balks", far.count < places {
                balking.violate(line, entry, "\(far.count) customers were there")
            }
            guard let stage = stages.firstIndex(of: entry.event), let ticket = entry.number else { continue }
            way.checked += 1
            if (far[ticket] ?? -1) != stage - 1 { way.violate(line, entry, "wrong after stage \(far[ticket] ?? -1)") }
            far[ticket] = entry.event == "leaves" ? nil : stage
            room.checked += 1
            if far.count > places || count("sits") > seats {
                room.violate(line, entry, "\(far.count) customers are there")
            }
            if stage <= 2 {
                order.checked += 1
                if ticket != last[entry.event, default: 0] + 1 { order.violate(line, entry, "not the next ticket") }
                last[entry.event] = ticket
            }
            guard entry.role == "barber" else { continue }
            busy.checked += 1
            if ["finishes", "hands"].contains(entry.event) {
                if work.removeValue(forKey: entry.player)?.number != ticket {
                    busy.violate(line, entry, "not the customer of this barber")
                }
            } else {
                if let other = work.updateValue(entry, forKey: entry.player) { busy.violate(line, entry, other.text) }
                if count("accepts") > 1 { busy.violate(line, entry, "two pay at once") }
            }
        }
        return [way, order, room, balking, busy]
    }
}
