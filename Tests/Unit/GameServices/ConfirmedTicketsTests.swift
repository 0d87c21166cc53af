import Testing

@testable import GameServices

extension GameServicesTests {
    @Suite("What a node of a matchmaker remembers")
    struct ConfirmedTicketsTests {
        private func waiting(_ id: String, _ player: String) -> ConfirmedTicket.Kind {
            .waiting(EnqueuedTicket(id: id, player: player, rating: 0, properties: "", end: nil, isInOrder: true))
        }

        private func outcome(_ ids: [String]) -> ConfirmedTicket.Kind {
            let lines = ["m", "matched"] + ids.flatMap { [$0, "player of \($0)", "0"] }
            let outcome = TicketOutcome(lines.joined(separator: "\n") + "\n")!
            return .outcome(ConfirmedOutcome(outcome: outcome, properties: "", isInOrder: true))
        }

        private func waiting(in tickets: ConfirmedTickets) -> [String] {
            ConfirmedTickets.waiting(among: Array(tickets.changes)).map(\.ticket.id)
        }

        @Test("a ticket with an outcome does not wait, in whichever order they were confirmed")
        func ended() {
            var tickets = ConfirmedTickets(maxAge: .seconds(30), maxBytes: 1 << 20)
            for kind in [waiting("a", "x"), outcome(["a", "c"]), waiting("b", "y"), waiting("c", "z")] {
                tickets.append(kind, at: .zero)
            }
            #expect(waiting(in: tickets) == ["b"])
        }

        @Test("only the last ticket of a player waits")
        func lastTicket() {
            var tickets = ConfirmedTickets(maxAge: .seconds(30), maxBytes: 1 << 20)
            for kind in [waiting("a", "x"), waiting("b", "y"), waiting("c", "x")] { tickets.append(kind, at: .zero) }
            #expect(waiting(in: tickets) == ["b", "c"])
        }

        @Test("what is older than the time, and what exceeds the bytes, is forgotten")
        func bounds() {
            var tickets = ConfirmedTickets(maxAge: .seconds(30), maxBytes: 1 << 20)
            tickets.append(waiting("a", "x"), at: .zero)
            tickets.append(waiting("b", "y"), at: .seconds(31))
            #expect(waiting(in: tickets) == ["b"])
            tickets.forgetOld(.seconds(62))
            #expect(tickets.changes.isEmpty)
            var few = ConfirmedTickets(maxAge: .seconds(30), maxBytes: 600)
            for kind in [waiting("a", "x"), waiting("b", "y"), waiting("c", "z")] { few.append(kind, at: .zero) }
            #expect(waiting(in: few) == ["b", "c"])
        }
    }
}
