// The claims on locks and permits that a history shows.

/// A claim, with the time during which its holder certainly believed to hold it.
struct RecordedClaim {
    var id: Announcements.Claim
    var verb: Event.Verb
    /// When the acquire began.
    var called: UInt64
    /// The first time at which the holder has read that it holds.
    var from: UInt64
    /// The last such time.
    var to: UInt64
    var fence: UInt64
    var count: Int
    var limit: Int
    /// Whether it is the turn of a cohort, whose end does not ask Redis.
    var isTurn: Bool

    var text: String { "process \(id.process)'s claim \(id.operation)" }

    /// The claims of a history, by resource, in the order in which they were held.
    static func all(in events: [Event]) -> [(resource: String, claims: [RecordedClaim])] {
        var places: [Announcements.Claim: (resource: String, place: Int)] = [:]
        var found: [String: [RecordedClaim]] = [:]
        for event in events {
            let id = Announcements.Claim(process: event.process, operation: event.operation ?? 0)
            switch event.kind {
            case .enter:
                guard let resource = event.resource, let verb = event.verb else { continue }
                places[id] = (resource, found[resource, default: []].count)
                found[resource, default: []].append(
                    RecordedClaim(
                        id: id, verb: verb, called: event.called ?? event.time, from: event.time, to: event.time,
                        fence: event.fence ?? 0, count: event.count ?? 1, limit: event.limit ?? 1,
                        isTurn: event.note == Event.turn))
            case .held:
                guard let (resource, place) = places[id] else { continue }
                found[resource]![place].to = event.time
            default: continue
            }
        }
        return found.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}

/// Finds holders that exclude each other and believed to hold at the same time.
///
/// Only times count at which a holder has read that its lease is held. Too many holders are allowed when enough of them
/// were notified afterwards that their claims are lost: after a failover that lost grants, a holder does not know it
/// until its first contact with the new master. The turn of a cohort may end normally before that: then it is enough
/// that its process was notified afterwards of the loss of data or of its session.
struct ExclusionCheck {
    let verb: Event.Verb
    var finding: Finding

    init(_ promise: Promise, of verb: Event.Verb) {
        self.verb = verb
        finding = Finding(promise)
    }

    mutating func check(_ resource: String, _ claims: [RecordedClaim], _ announcements: Announcements) {
        var active: [RecordedClaim] = []
        for claim in claims where claim.verb == verb {
            active.removeAll { $0.to < claim.from }
            active.append(claim)
            finding.checks += 1
            guard active.reduce(0, { $0 + $1.count }) > claim.limit else { continue }
            let notices = active.map { holder in
                let own = announcements.notice(of: holder.id, after: claim.from)
                guard holder.isTurn, own == .missing else { return own }
                return announcements.notice(to: holder.id.process, after: claim.from)
            }
            // The claims of which nobody was notified must be few enough to be allowed.
            func remaining(_ isCounted: (Announcements.Notice) -> Bool) -> Int {
                zip(active, notices).reduce(0) { isCounted($1.1) ? $0 + $1.0.count : $0 }
            }
            let notice: Announcements.Notice =
                remaining({ $0 != .given }) <= claim.limit
                ? .given : remaining({ $0 == .missing }) <= claim.limit ? .impossible : .missing
            let holders = active.map(\.text).joined(separator: ", ")
            let sum = active.reduce(0) { $0 + $1.count }
            finding.add(notice, "\(resource): \(holders) held \(sum) of \(claim.limit) at \(claim.from)")
        }
    }
}

/// Finds fences that repeat, or that are lower than one that was granted before the acquire began.
struct FenceCheck {
    var finding = Finding(.fences)

    mutating func check(_ resource: String, _ claims: [RecordedClaim], _ announcements: Announcements) {
        var owners: [UInt64: RecordedClaim] = [:]
        var highest: RecordedClaim?
        var entered = claims[...]
        for claim in claims.sorted(by: { $0.called < $1.called }) {
            // All claims that were held before this acquire began.
            while let next = entered.first, next.from < claim.called {
                if next.fence > highest?.fence ?? 0 { highest = next }
                entered.removeFirst()
            }
            finding.checks += 1
            if let other = owners.updateValue(claim, forKey: claim.fence) {
                add("\(resource): \(other.text) and \(claim.text) have the same fence \(claim.fence)", other, claim)
            } else if let highest, highest.fence >= claim.fence {
                add(
                    "\(resource): \(claim.text) has the fence \(claim.fence), and \(highest.text) had "
                        + "\(highest.fence) before", highest, claim)
            }
        }
        // No living process knows the fence of one that was killed: the clocks of two masters may differ.
        func add(_ text: String, _ earlier: RecordedClaim, _ later: RecordedClaim) {
            let isKilled = announcements.kills[earlier.id.process].map { $0 < later.from } ?? false
            finding.add(isKilled && announcements.hasAny(around: later.from) ? .impossible : .missing, text)
        }
    }
}
