// Dining savages: savages eat from a pot with a fixed number of servings. One that finds the pot
// empty wakes the cook and waits. The cook fills the pot only when it is empty.
//
// The book counts the servings under a mutex, with a semaphore for the empty pot and one for the
// full pot. Here the count is on a scoreboard, and both sides wait for its changes. If a process is
// killed: taking a serving and logging it is one step, and so is filling the pot.
import RedisDC

struct DiningSavages: Problem {
    let name = "dining-savages"
    let title = "Savages eat from the pot, and the cook fills it when it is empty"
    let chapter = Chapter.lessClassical
    let processes = 4
    private let servings = 3

    func cast(_ processes: Int) -> [Role] {
        [Role("cook", 1) { try await cook($0) }, Role("savage", processes - 1, roundEnd: "eats", play: savage)]
    }

    func cook(_ me: Player) async throws {
        let pot = try await Scoreboard(me, "pot")
        while true {
            try await pot.turn { pot in
                try await pot.wait { $0["hungry"] != nil ? () : nil }
                try await pot.change(["servings": "\(servings)", "hungry": nil], "fills", wakes: ["savage"])
            }
        }
    }

    func savage(_ me: Player) async throws {
        let pot = try await Scoreboard(me, "pot")
        for round in try await me.roundsUntilAllAreDone() {
            try await pot.turn { pot in
                var left = 0
                while left == 0 {
                    left = try await pot.wait { board in
                        board["servings"].flatMap { Int($0) } ?? (board["hungry"] == nil ? 0 : nil)
                    }
                    if left == 0 { try await pot.change(["hungry": me.name], "wakes", round, wakes: ["cook"]) }
                }
                let rest = left > 1 ? "\(left - 1)" : nil
                try await pot.change(["servings": rest], "takes", round, wakes: rest == nil ? ["savage"] : [])
            }
            try await me.work()
            try await me.log("eats", round)
        }
    }

    func check(_ log: Log) -> [Invariant] {
        var taking = Invariant("nobody takes from an empty pot", unit: "servings")
        var filling = Invariant("the cook fills the pot only when it is empty and a savage has asked", unit: "fillings")
        var left = 0
        var isAwake = false
        for (line, entry) in log.entries.enumerated() {
            switch entry.event {
            case "wakes": isAwake = true
            case "fills":
                filling.checked += 1
                if left > 0 || !isAwake { filling.violate(line, entry, "\(left) servings were left") }
                (left, isAwake) = (servings, false)
            case "takes":
                taking.checked += 1
                if left <= 0 { taking.violate(line, entry, "all \(servings) were taken") }
                left -= 1
            default: break
            }
        }
        return [taking, filling]
    }
}
