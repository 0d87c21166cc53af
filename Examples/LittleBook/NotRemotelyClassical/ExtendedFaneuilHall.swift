// Extended Faneuil Hall: like Faneuil Hall, and immigrants who have sworn leave before the judge
// enters again, so that none is sworn in twice.
//
// After leaving, the judge keeps the door shut until they have left by another way. If a process is
// killed: that the judge is inside is stored in the same step as the log entry, and immigrants do
// not leave while it is. A judge that died inside first leaves in its next life, which lets them
// leave.
import RedisDC

struct ExtendedFaneuilHall: Problem {
    let name = "extended-faneuil-hall"
    let title = "Immigrants who have sworn leave before the judge enters again"
    let chapter = Chapter.notRemotelyClassical
    let processes = 6

    func cast(_ processes: Int) -> [Role] {
        let spectators = max(1, processes / 4)
        return [
            Role("judge", 1, roundEnd: "rests", play: judge),
            Role("immigrant", processes - 1 - spectators, roundEnd: "leaves", play: immigrant),
            Role("spectator", spectators, roundEnd: "leaves", play: Hall.spectator),
        ]
    }

    func judge(_ me: Player) async throws {
        let hall = try Hall(me)
        for round in try await me.roundsUntilAllAreDone() {
            try await me.work()
            try await hall.door.withLock { _ in
                try await hall.mutex.withLock { lease in
                    if try await me.places()[me.name] != nil { try await leave(hall, round) }
                    try await untilAllHaveGone(hall, lease)
                    try await me.log("enters", round, to: "there")
                    try await hall.confirm(round, lease)
                    try await leave(hall, round)
                    try await untilAllHaveGone(hall, lease)
                }
                try await me.log("rests", round)
            }
        }
    }

    private func leave(_ hall: Hall, _ round: Int) async throws {
        try await hall.me.log("leaves", round, to: "")
        try await hall.change.notifyAll()
    }

    private func untilAllHaveGone(_ hall: Hall, _ lease: Lease) async throws {
        while try await hall.me.places().values.contains(where: { ["confirmed", "sworn-in"].contains($0) }) {
            try await hall.change.wait(lease)
        }
    }

    func immigrant(_ me: Player) async throws {
        let hall = try Hall(me)
        for round in try await me.roundsUntilAllAreDone() {
            // A former life may have died after it left and before it notified the judge.
            try await hall.mutex.withLock { _ in try await hall.change.notifyAll() }
            try await hall.swear(round)
            try await hall.mutex.withLock { lease in
                while try await me.places()["judge-1"] != nil { try await hall.change.wait(lease) }
                try await me.log("leaves", round, to: "")
                try await hall.change.notifyAll()
            }
        }
    }

    func check(_ log: Log) -> [Invariant] {
        var gone = Invariant("immigrants who have sworn have left when the judge enters", unit: "times")
        var sworn: Set<String> = []
        for (line, entry) in log.entries.enumerated() {
            switch (entry.role, entry.event) {
            case ("judge", "enters"):
                gone.checked += 1
                if !sworn.isEmpty { gone.violate(line, entry, "still there: \(sworn.sorted())") }
            case ("immigrant", "swears"): sworn.insert(entry.player)
            case ("immigrant", "leaves"): sworn.remove(entry.player)
            default: break
            }
        }
        return Hall.check(log) + [gone]
    }
}
