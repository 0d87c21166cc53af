// The checks that many problems need. Each knows what a kill means for it.

extension Log {
    /// Who comes in must be allowed to, seeing who is inside. Whoever is killed is inside no more: what it held was freed
    /// later still, so whoever comes in next has waited even longer.
    ///
    /// - Parameters:
    ///   - enter, leave: the events with which one comes in and goes out.
    ///   - isAllowed: given what those inside have said when they came in, and the one who comes.
    public func inside(
        _ statement: String, from enter: Set<String>, to leave: Set<String>,
        isAllowed: (_ inside: [Entry], _ newcomer: Entry) -> Bool
    ) -> Invariant {
        var invariant = Invariant(statement, unit: "times inside")
        var inside: [Entry] = []
        var most = 0
        for (line, entry) in entries.enumerated() {
            let place = inside.firstIndex { $0.player == entry.player }
            if enter.contains(entry.event) {
                invariant.checked += 1
                if place != nil { invariant.violate(line, entry, "is inside already") }
                if !isAllowed(inside, entry) {
                    invariant.violate(line, entry, "inside: " + inside.map(\.text).joined(separator: ", "))
                }
                if place == nil { inside.append(entry) }
                most = max(most, inside.count)
            } else if leave.contains(entry.event) {
                if let place { inside.remove(at: place) } else { invariant.violate(line, entry, "was not inside") }
            } else if entry.event == Entry.killed, let place {
                inside.remove(at: place)
            }
        }
        invariant.remark = "at most \(most) at once"
        return invariant
    }

    /// Never more than so many inside.
    public func atMost(_ limit: Int, _ statement: String, from enter: String, to leave: String) -> Invariant {
        inside(statement, from: [enter], to: [leave]) { inside, _ in inside.count < limit }
    }

    /// Before each `later` there is the `earlier` with the same key. One that is said again after a death changes nothing.
    public func each(
        _ later: String, after earlier: String, _ statement: String, key: (Entry) -> String
    ) -> Invariant {
        var invariant = Invariant(statement, unit: "times")
        var seen: Set<String> = []
        for (line, entry) in entries.enumerated() {
            if entry.event == earlier { seen.insert(key(entry)) }
            guard entry.event == later else { continue }
            invariant.checked += 1
            if !seen.contains(key(entry)) { invariant.violate(line, entry, "no \(earlier) before it") }
        }
        return invariant
    }

    /// What belongs together has the same number, is whole, and comes before all of the next. A group may lack the one who
    /// was killed before it could say that it was in it; and the last one, in the middle of which the log may end.
    ///
    /// - Parameters:
    ///   - size: how many make a group.
    ///   - isWhole: whether so many of each role do.
    public func groups(
        of event: String, size: Int, _ statement: String, isWhole: (_ roles: [String: Int]) -> Bool
    ) -> Invariant {
        var invariant = Invariant(statement, unit: "groups")
        var members: [Entry] = []
        var dead: [Entry] = []
        func roles(_ entries: [Entry]) -> [String: Int] { Dictionary(grouping: entries, by: \.role).mapValues(\.count) }
        func close(_ line: Int) {
            guard let last = members.last else { return }
            invariant.checked += 1
            if isWhole(roles(members)) { return }
            let absent = dead.firstIndex { one in
                !members.contains { $0.player == one.player } && isWhole(roles(members + [one]))
            }
            if let absent {
                dead.remove(at: absent)
            } else {
                invariant.violate(line, last, "not whole: " + members.map(\.player).joined(separator: ", "))
            }
        }
        for (line, entry) in entries.enumerated() {
            if entry.event == Entry.killed { dead.append(entry) }
            guard entry.event == event else { continue }
            if let last = members.last, last.number != entry.number {
                if (entry.number ?? 0) < (last.number ?? 0) {
                    invariant.violate(line, entry, "comes after \(last.text)")
                }
                close(line)
                members = []
            }
            if members.contains(where: { $0.player == entry.player }) {
                invariant.violate(line, entry, "is in it twice")
            }
            members.append(entry)
        }
        if members.count >= size { close(entries.count - 1) }
        return invariant
    }

    /// Nobody who has asked sees the same other one go first more often than `limit` times. What happens until a killed
    /// process is back is not counted: what it held keeps others waiting as long as its session lives.
    public func overtaking(
        _ statement: String, asks: String, gets: String, limit: Int
    ) -> Invariant {
        var invariant = Invariant(statement, unit: "waits")
        var passed: [String: [String: Int]] = [:]
        var most = 0
        var absent: Set<String> = []
        for (line, entry) in entries.enumerated() {
            switch entry.event {
            case asks: passed[entry.player] = [:]
            case gets:
                if passed.removeValue(forKey: entry.player) != nil { invariant.checked += 1 }
                guard absent.isEmpty else { continue }
                for waiter in passed.keys {
                    let count = passed[waiter, default: [:]][entry.player, default: 0] + 1
                    passed[waiter]?[entry.player] = count
                    most = max(most, count)
                    if count == limit + 1 { invariant.violate(line, entry, "\(waiter) waits all the while") }
                }
            case Entry.killed:
                absent.insert(entry.player)
                passed[entry.player] = nil
            case Entry.back:
                absent.remove(entry.player)
                passed = passed.mapValues { _ in [:] }
            default: break
            }
        }
        invariant.remark = "passed at most \(most) times by one other"
        return invariant
    }
}
