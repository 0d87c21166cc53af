// The generations of barriers.

/// Finds generations of a barrier that opened with too few parties, with too many, or before all had arrived.
///
/// The missing parties of a generation must be among the arrivals without a known outcome. A generation that repeats
/// after a failover is allowed if one of its parties was notified of the loss.
struct BarrierCheck {
    var finding = Finding(.barriers)

    private struct Arrival {
        var call: Event
        var end: Event?

        /// The time at which the call ended; the maximum if it did not.
        var last: UInt64 { end?.time ?? .max }

        /// Whether an arrival without a known outcome may be among those for which the barrier opened. Its end goes on
        /// in the background after the call: Redis counts the party until then, or until its session is over.
        func mayCount(at opened: UInt64) -> Bool {
            call.time <= opened && (last >= opened || Announcements.follows(opened, last))
        }
    }

    mutating func check(_ events: [Event], _ announcements: Announcements) {
        var ends: [Announcements.Claim: Event] = [:]
        for event in events where event.kind == .end {
            ends[Announcements.Claim(process: event.process, operation: event.operation ?? 0)] = event
        }
        var arrivals: [String: [Arrival]] = [:]
        for event in events where event.kind == .call && event.verb == .arrive {
            let end = ends[Announcements.Claim(process: event.process, operation: event.operation ?? 0)]
            arrivals[event.resource ?? "", default: []].append(Arrival(call: event, end: end))
        }
        for (name, all) in arrivals.sorted(by: { $0.key < $1.key }) { check(name, all, announcements) }
    }

    private mutating func check(_ name: String, _ arrivals: [Arrival], _ announcements: Announcements) {
        let passed = arrivals.filter { $0.end?.outcome == .ok }
        var unknown = arrivals.filter { ($0.end?.outcome ?? .unknown) == .unknown }
        let generations = Dictionary(grouping: passed) { $0.end?.generation ?? 0 }
        for (generation, parties) in generations.sorted(by: { $0.key < $1.key }) {
            finding.checks += 1
            guard let limit = parties[0].call.limit, let opened = parties.compactMap({ $0.end?.time }).min() else {
                continue
            }
            let title = "\(name), generation \(generation)"
            var fault: String?
            if Set(parties.map { $0.end?.index ?? 0 }).count < parties.count || parties.count > limit {
                fault = "\(parties.count) passes of \(limit) parties, with places \(parties.map { $0.end?.index ?? 0 })"
            } else if let late = parties.first(where: { $0.call.time > opened }) {
                fault = "process \(late.call.process) passed, and had arrived only after another one had passed"
            } else {
                for _ in parties.count..<limit {
                    let candidates = unknown.indices.filter { unknown[$0].mayCount(at: opened) }
                    // The one that ended first: the others are left for later generations.
                    guard let place = candidates.min(by: { unknown[$0].last < unknown[$1].last }) else {
                        fault = "opened for \(parties.count) of \(limit) parties"
                        break
                    }
                    unknown.remove(at: place)
                }
            }
            guard let fault else { continue }
            let notices = parties.map { announcements.notice(to: $0.call.process, after: $0.call.time) }
            let notice: Announcements.Notice =
                notices.contains(.given) ? .given : notices.contains(.impossible) ? .impossible : .missing
            finding.add(notice, "\(title): \(fault)")
        }
    }
}
