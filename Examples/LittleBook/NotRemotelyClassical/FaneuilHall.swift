// Faneuil Hall: immigrants enter, check in and sit down; spectators come and go. While the judge is
// inside, no one enters, and no immigrant leaves. The judge confirms the naturalization when all
// immigrants inside have checked in. They then swear, and leave after the judge.
//
// As in the book, all enter by a door that the judge keeps shut while inside. If a process is
// killed: the door is a lease. A dead judge is outside, and enters again in the next life. The
// progress of an immigrant is stored in the same step as its log entry, and its next life continues
// from there. The judge waits for an immigrant that has entered and not checked in.
import RedisDC

struct FaneuilHall: Problem {
    let name = "faneuil-hall"
    let title = "The judge confirms when all immigrants inside have checked in"
    let chapter = Chapter.notRemotelyClassical
    let processes = 6

    func cast(_ processes: Int) -> [Role] {
        let spectators = max(1, processes / 4)
        return [
            Role("judge", 1, roundEnd: "leaves", play: judge),
            Role("immigrant", processes - 1 - spectators, roundEnd: "leaves", play: immigrant),
            Role("spectator", spectators, roundEnd: "leaves", play: Hall.spectator),
        ]
    }

    func judge(_ me: Player) async throws {
        let hall = try Hall(me)
        for round in try await me.roundsUntilAllAreDone() {
            try await me.work()
            try await hall.door.withLock { _ in
                try await me.log("enters", round)
                try await hall.mutex.withLock { lease in try await hall.confirm(round, lease) }
                try await me.work()
                try await me.log("leaves", round)
            }
        }
    }

    func immigrant(_ me: Player) async throws {
        let hall = try Hall(me)
        for round in try await me.roundsUntilAllAreDone() {
            try await hall.swear(round)
            try await hall.door.withLock { _ in try await me.log("leaves", round, to: "") }
        }
    }

    func check(_ log: Log) -> [Invariant] { Hall.check(log) }
}

/// The hall, and the steps that both versions of Faneuil Hall share.
struct Hall {
    let me: Player
    let door: DistributedMutex
    let mutex: DistributedMutex
    let change: Condition

    init(_ me: Player) throws {
        self.me = me
        door = try me.coordinator.mutex("door")
        mutex = try me.coordinator.mutex("hall")
        change = try mutex.condition("change")
    }

    /// Waits until all immigrants inside have checked in, and confirms them. For the judge.
    func confirm(_ round: Int, _ lease: Lease) async throws {
        while try await me.places().values.contains("entered") { try await change.wait(lease) }
        let checked = try await me.places().filter { $0.value == "checked-in" }
        try await me.log("confirms", round, moving: checked.mapValues { _ in "confirmed" })
        try await change.notifyAll()
    }

    /// Enters, checks in, waits for the confirmation and swears. After a death, the next life
    /// continues from the last step. For immigrants.
    func swear(_ round: Int) async throws {
        if try await me.places()[me.name] == nil {
            try await door.withLock { _ in try await me.log("enters", round, to: "entered") }
        }
        try await mutex.withLock { lease in
            if try await me.places()[me.name] == "entered" { try await me.log("checks-in", round, to: "checked-in") }
            try await change.notifyAll()
            while try await me.places()[me.name] == "checked-in" { try await change.wait(lease) }
        }
        if try await me.places()[me.name] == "confirmed" { try await me.log("swears", round, to: "sworn-in") }
    }

    @Sendable static func spectator(_ me: Player) async throws {
        let hall = try Hall(me)
        for round in try await me.roundsUntilAllAreDone() {
            try await hall.door.withLock { _ in try await me.log("enters", round) }
            try await me.work()
            try await me.log("leaves", round)
            try await me.work()
        }
    }

    static func check(_ log: Log) -> [Invariant] {
        var shut = Invariant("nobody enters while the judge is inside", unit: "times")
        var stay = Invariant("no immigrant leaves while the judge is inside", unit: "times")
        var all = Invariant("the judge confirms when all immigrants inside have checked in", unit: "times")
        var oath = Invariant("an immigrant swears only after the confirmation", unit: "oaths")
        var isJudgeThere = false
        var places: [String: String] = [:]
        for (line, entry) in log.entries.enumerated() {
            switch (entry.role, entry.event) {
            case ("judge", "enters"): isJudgeThere = true
            case ("judge", "leaves"), ("judge", Entry.killed): isJudgeThere = false
            case ("judge", "confirms"):
                all.checked += 1
                let late = places.filter { $0.value == "enters" }.keys.sorted()
                if !late.isEmpty { all.violate(line, entry, "not checked in: \(late)") }
                places = places.mapValues { $0 == "checks-in" ? "confirmed" : $0 }
            case (_, "enters"):
                shut.checked += 1
                if isJudgeThere { shut.violate(line, entry, "the judge is inside") }
                if entry.role == "immigrant" { places[entry.player] = entry.event }
            case ("immigrant", "checks-in"): places[entry.player] = entry.event
            case ("immigrant", "swears"):
                oath.checked += 1
                if places[entry.player] != "confirmed" { oath.violate(line, entry, "the judge has not confirmed it") }
            case ("immigrant", "leaves"):
                stay.checked += 1
                if isJudgeThere { stay.violate(line, entry, "the judge is inside") }
                places[entry.player] = nil
            default: break
            }
        }
        return [shut, stay, all, oath]
    }
}
