// Checks that the records of the server are consistent, and what scripts change.
import SimulatedRedis

extension Ledger {
    /// The inconsistencies; empty if there is none.
    func faults() -> [String] {
        var faults: [String] = []
        let (expected, found) = (expectedLines, lines.filter { !Array("tduvg".utf8).contains($0[0]) })
        for line in found.subtracting(expected) { faults.append("a line of the index without a claim: \(Bytes(line))") }
        for line in expected.subtracting(found) {
            faults.append("a claim without its line in the index: \(Bytes(line))")
        }
        for slot in slots where !sessions.contains(String(slot.prefix { $0 != ":" })) {
            faults.append("a slot without a session: \(slot)")
        }
        for (name, resource) in resources { faults += self.faults(of: name, resource) }
        return faults
    }

    private var expectedLines: Set<[UInt8]> {
        var expected: Set<[UInt8]> = []
        for (id, claim) in claims {
            let isNamed = "mk".contains(claim.mode) && resources[claim.name]?.family != "g"
            if claim.state == "h", !isNamed { expected.insert(Self.line(ofHolder: id, claim)) }
            if claim.state == "w" {
                let tick = withUnsafeBytes(of: UInt64(claim.tick).bigEndian) { Array($0) }
                expected.insert(Array("q\(claim.name)\0\(claim.priority)".utf8) + tick + Array(id.utf8))
            }
        }
        return expected
    }

    /// The number of lines of a resource that begin with a letter.
    func lineCount(_ letter: String, _ name: String) -> Int {
        let start = Array("\(letter)\(name)\0".utf8)
        return lines.count { $0.starts(with: start) }
    }

    private func faults(of name: String, _ resource: Resource) -> [String] {
        var faults: [String] = []
        let own = claims.values.filter { $0.name == name }
        let held = own.filter { $0.state == "h" && $0.tick >= resource.created }
        let waiting = own.count { $0.state == "w" }
        if resource.waiting != waiting { faults.append("\(name) counts \(resource.waiting) waiters of \(waiting)") }
        switch resource.kind {
        case "b", "e", "x", "z": break
        case "p":
            let parties = held.count { $0.mode == "r" }
            if resource.limit != parties { faults.append("\(name) counts \(resource.limit) parties of \(parties)") }
        case "l":
            if lineCount("d", name) > min(resource.signalled, resource.limit) {
                faults.append("\(name) notes ids that have not counted")
            }
        default:
            let inside = groups.count { $0.key.hasPrefix("\(name)\0") && $0.value == resource.created }
            let taken = held.reduce(inside) { $0 + $1.count }
            if resource.free + taken != resource.limit + resource.signalled - resource.consumed {
                faults.append("permits of \(name) are not conserved: \(resource), \(taken) taken")
            }
            if resource.kind == "i", lineCount("v", name) != resource.free + held.count(where: { $0.mode != "i" }) {
                faults.append("\(name) has \(lineCount("v", name)) items: \(resource)")
            }
        }
        return faults
    }

    /// The first waiters of resources that have what they wait for.
    func stuck() -> [String] {
        resources.compactMap { name, resource in
            let isCounted = "smrctlki".contains(resource.kind) && !lines.contains(Array("t\(name)".utf8))
            guard isCounted, let first = queue(of: name).first else { return nil }
            let (id, claim) = first
            guard livingSessions.contains(session(of: id)) else { return nil }
            let isWithGroup = claim.mode == "t" && groups["\(name)\0\(claim.note)"] == resource.created
            guard isWithGroup || resource.free >= claim.count else { return nil }
            return "\(id) waits for \(claim.count) of \(name), of which \(resource.free) are free"
        }
    }

    func session(of claim: String) -> String { String(claim.prefix { $0 != ":" }) }

    /// The waiters of a resource, the first one first.
    private func queue(of name: String) -> [(id: String, claim: Claim)] {
        claims.filter { $0.value.state == "w" && $0.value.name == name }
            .sorted { ($0.value.priority, $0.value.tick) < ($1.value.priority, $1.value.tick) }
            .map { ($0.key, $0.value) }
    }

    // MARK: What scripts change

    /// What a script has done and must not do.
    ///
    /// - Parameter before: what the server had before the script.
    func wrongs(since before: Ledger) -> [String] {
        claims.flatMap { id, granted in overtakings(id, granted, since: before) }
            + resources.compactMap { openingWithoutParties($0, $1, since: before) }
            + resources.compactMap { name, resource in
                let isSame = resource.kind == "i" && before.resources[name]?.created == resource.created
                return isSame ? itemOutOfOrder(name, since: before) : nil
            }
            + resources.compactMap { name, resource in
                guard resource.free < 0, before.resources[name]?.free ?? 0 > resource.free else { return nil }
                let isResized = before.resources[name]?.limit != resource.limit
                return isResized ? nil : "more of \(name) was granted than is free: \(resource)"
            }
    }

    /// The waiters that a claim has overtaken, which the script has granted.
    private func overtakings(_ id: String, _ granted: Claim, since before: Ledger) -> [String] {
        let was = before.claims[id]
        guard granted.state != "w", was?.state ?? "w" == "w", let resource = resources[granted.name],
            "smrctki".contains(resource.kind), granted.mode != "t"
        else { return [] }
        // Whoever comes while there is enough may overtake those who want more.
        if was == nil, resource.kind == "s", resource.policy == "b" { return [] }
        return before.queue(of: granted.name).compactMap { other, waiting in
            guard claims[other]?.state == "w", claims[other]?.tick == waiting.tick,
                livingSessions.contains(session(of: other)),
                waiting.priority < granted.priority
                    || waiting.priority == granted.priority && was.map({ waiting.tick < $0.tick }) ?? true
            else { return nil }
            return "\(id) was granted \(granted.name) before \(other), which had waited longer"
        }
    }

    /// Whether an item was taken before one that had come earlier.
    private func itemOutOfOrder(_ name: String, since before: Ledger) -> String? {
        let start = Array("v\(name)\0".utf8)
        let items = before.lines.filter { $0.starts(with: start) }
        guard let taken = items.subtracting(lines).max(by: { $0.lexicographicallyPrecedes($1) }),
            items.contains(where: { lines.contains($0) && $0.lexicographicallyPrecedes(taken) })
        else { return nil }
        return "an item of \(name) was taken before an earlier one"
    }

    /// Whether a generation was opened without as many living parties as it needs.
    private func openingWithoutParties(_ name: String, _ resource: Resource, since before: Ledger) -> String? {
        guard let old = before.resources[name], "bep".contains(resource.kind), old.created == resource.created,
            resource.signalled > old.signalled
        else { return nil }
        let waiting = before.queue(of: name)
        let living = waiting.count { livingSessions.contains(session(of: $0.id)) }
        let parties = min(old.limit, resource.limit)
        // The script itself may have brought the last one.
        if living + 1 < parties { return "\(name) has opened with \(living + 1) living parties of \(parties)" }
        if resource.policy == "b", living < waiting.count { return "\(name) has opened, and a party had died" }
        return nil
    }
}
