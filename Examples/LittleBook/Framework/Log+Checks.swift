// The checks that many problems share. Each takes deaths into account.

extension Log {
    /// Checks that every player that enters a critical section is compatible with those inside.
    ///
    /// A killed player counts as outside from its death on. What it held is freed only later, so
    /// this never rejects a correct log.
    ///
    /// - Parameters:
    ///   - statement: the invariant in words.
    ///   - enter: the events that enter the section.
    ///   - leave: the events that leave it.
    ///   - isAllowed: whether a player may enter, given the entries with which those inside have
    ///     entered.
    public func inside(
        _ statement: String, from enter: Set<String>, to leave: Set<String>,
        isAllowed: (_ inside: [Entry], _ newcomer: Entry) -> Bool
    ) -> Invariant {
        var invariant = Invariant(statement, unit: "times inside")
        var inside: [Entry] = []
        var maxInside = 0
        for (line, entry) in entries.enumerated() {
            let place = inside.firstIndex { $0.player == entry.player }
            if enter.contains(entry.event) {
                invariant.checked += 1
                if place != nil { invariant.violate(line, entry, "is inside already") }
                if !isAllowed(inside, entry) {
                    invariant.violate(line, entry, "inside: " + inside.map(\.text).joined(separator: ", "))
                }
                if place == nil { inside.append(entry) }
                maxInside = max(maxInside, inside.count)
            } else if leave.contains(entry.event) {
                if let place { inside.remove(at: place) } else { invariant.violate(line, entry, "was not inside") }
            } else if entry.event == Entry.killed, let place {
                inside.remove(at: place)
            }
        }
        invariant.remark = "at most \(maxInside) at once"
        return invariant
    }

    /// Checks that at most `limit` players are inside at the same time.
    public func atMost(_ limit: Int, _ statement: String, from enter: String, to leave: String) -> Invariant {
        inside(statement, from: [enter], to: [leave]) { inside, _ in inside.count < limit }
    }

    /// Checks that each `later` event follows an `earlier` event with the same key. Repetitions
    /// after a death are allowed.
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

    /// Checks that the entries of a group have the same number, are complete, and precede those of
    /// the next group.
    ///
    /// A group may lack a player that was killed before it wrote its entry. The last group may be
    /// incomplete, because the log may end within it.
    ///
    /// - Parameters:
    ///   - event: the event that each member logs.
    ///   - size: the number of members of a group.
    ///   - statement: the invariant in words.
    ///   - isWhole: whether members with these counts per role are a complete group.
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
                invariant.violate(line, last, "incomplete: " + members.map(\.player).joined(separator: ", "))
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
                invariant.violate(line, entry, "is in the group twice")
            }
            members.append(entry)
        }
        if members.count >= size { close(entries.count - 1) }
        return invariant
    }

    /// Checks bounded waiting: the same other player passes a waiting one at most `limit` times.
    ///
    /// Nothing is counted from a death until the killed player is back, because what it held keeps
    /// others waiting until its session has expired.
    ///
    /// - Parameters:
    ///   - statement: the invariant in words.
    ///   - asks: the event that begins a wait.
    ///   - gets: the event that ends it.
    ///   - limit: the maximum number of times that one other player may pass.
    public func overtaking(
        _ statement: String, asks: String, gets: String, limit: Int
    ) -> Invariant {
        var invariant = Invariant(statement, unit: "waits")
        var passed: [String: [String: Int]] = [:]
        var maxPassed = 0
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
                    maxPassed = max(maxPassed, count)
                    if count == limit + 1 { invariant.violate(line, entry, "passes \(waiter) once more than allowed") }
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
        invariant.remark = "passed at most \(maxPassed) times by the same other"
        return invariant
    }
}
