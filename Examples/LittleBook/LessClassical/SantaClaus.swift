// Santa Claus sleeps until all his reindeer are back, or until three elves need help. The reindeer
// have priority: he prepares the sleigh, and they get hitched. Elves come to him three at a time;
// the others wait until those three have been helped.
//
// In the book, the last of a group wakes him. Here all of a group do, and a group has a number, so
// that it counts once. If a process is killed: an elf's turn is a lease, and a member that dies
// when its group is complete is missing from it. Whether a group waits or is served is stored in
// the same step as its log entry, and Santa's next life continues with the waiting groups.
import RedisDC

struct SantaClaus: Problem {
    let name = "santa"
    let title = "Santa serves all the reindeer first, and elves three at a time"
    let chapter = Chapter.lessClassical
    let processes = 7
    let minProcesses = 5

    func cast(_ processes: Int) -> [Role] {
        let reindeer = (processes - 1) / 3
        return [
            Role("santa", 1, play: santa),
            Role("reindeer", reindeer, roundEnd: "hitched", play: playReindeer),
            Role("elf", processes - 1 - reindeer, roundEnd: "helped", play: playElf),
        ]
    }

    func santa(_ me: Player) async throws {
        let (pole, knock, served) = try northPole(me)
        try await pole.withLock { lease in
            // A former life may have served groups without notifying them.
            try await served.notifyAll()
            while true {
                let waiting = try await me.places().filter { $0.value == "waits" }.keys.sorted()
                if let group = waiting.last(where: { $0.hasPrefix("sleigh") }) ?? waiting.first {
                    let event = group.hasPrefix("sleigh") ? "prepares" : "helps"
                    try await me.log(event, Int(group.split(separator: " ")[1]), moving: [group: "served"])
                    try await served.notifyAll()
                } else {
                    try await knock.wait(lease)
                }
            }
        }
    }

    func playReindeer(_ me: Player) async throws {
        let back = try me.coordinator.barrier("reindeer are back", parties: me.counts["reindeer"] ?? 0)
        while true {
            try await me.work()
            let sleigh = Int(try await back.arriveAndWait().generation) + 1
            try await askSanta(me, "sleigh \(sleigh)", sleigh)
            try await me.log("hitched", sleigh)
        }
    }

    func playElf(_ me: Player) async throws {
        let turns = try me.coordinator.semaphore("turns of elves", permits: 3)
        let three = try me.coordinator.barrier("three elves", parties: 3)
        while true {
            try await me.work()
            try await turns.withPermit { _ in
                let group = Int(try await three.arriveAndWait().generation) + 1
                try await askSanta(me, "elves \(group)", group)
                try await me.log("helped", group)
            }
        }
    }

    private func askSanta(_ me: Player, _ group: String, _ number: Int) async throws {
        let (pole, knock, served) = try northPole(me)
        try await pole.withLock { lease in
            if try await me.places()[group] == nil { try await me.log("asks", number, moving: [group: "waits"]) }
            try await knock.notify()
            while try await me.places()[group] == "waits" { try await served.wait(lease) }
        }
    }

    private func northPole(_ me: Player) throws -> (DistributedMutex, Condition, Condition) {
        let pole = try me.coordinator.mutex("pole")
        return (pole, try pole.condition("knock"), try pole.condition("served"))
    }

    func check(_ log: Log) -> [Invariant] {
        let reindeer = log.count(of: "reindeer")
        func number(_ entry: Entry) -> String { "\(entry.number ?? 0)" }
        var order = Invariant("no elves are helped while the reindeer wait", unit: "times")
        var sleigh: Int?
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "asks" where entry.role == "reindeer": sleigh = entry.number
            case "prepares": sleigh = nil
            case "helps":
                order.checked += 1
                if let sleigh { order.violate(line, entry, "sleigh \(sleigh) waits") }
            default: break
            }
        }
        return [
            order,
            log.groups(of: "hitched", size: reindeer, "all reindeer get hitched, sleigh after sleigh") {
                $0 == ["reindeer": reindeer]
            },
            log.groups(of: "helped", size: 3, "elves are helped three at a time") { $0 == ["elf": 3] },
            log.each("hitched", after: "prepares", "a sleigh is prepared before anyone gets hitched", key: number),
            log.each("helped", after: "helps", "an elf is helped only after Santa has helped its group", key: number),
        ]
    }
}
