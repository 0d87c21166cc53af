// No-starve mutex, Morris's algorithm: from weak mutexes, which admit waiters in any order, it
// builds a mutex that no process acquires more than twice while another waits. A process first
// enters the first room. When all processes of the first room have moved to the second, the door of
// the first room closes, and the door to the critical section opens. When the second room is empty,
// the first door opens again.
//
// The book's token, which is at one of the two turnstiles, is on a scoreboard here: the room of
// each process, and whether the first door is shut. If a process is killed, its name stays in its
// room, and the doors wait until its next life continues from there.
import RedisDC

struct NoStarveMutex: Problem {
    let name = "no-starve-mutex"
    let title = "A mutex from weak mutexes: nobody is passed more than twice by the same other"
    let chapter = Chapter.classical
    let processes = 3

    func cast(_ processes: Int) -> [Role] { [Role("thread", processes, roundEnd: "leaves", play: thread)] }

    func thread(_ me: Player) async throws {
        let rooms = try await Scoreboard(me, "rooms")
        while true {
            if try await rooms.read()[me.name] == nil { try await rooms.change([me.name: "first"], "asks", wakes: []) }
            try await weakly(me) {
                let board = try await rooms.read()
                if board[me.name] == "second" { return true }
                guard board["first door"] == nil else { return false }
                let isLast = board.values.count { $0 == "first" } == 1
                try await rooms.change([me.name: "second", "first door": isLast ? "shut" : nil], "moves", wakes: [])
                return true
            }
            try await weakly(me) {
                let board = try await rooms.read()
                guard board["first door"] == "shut" else { return false }
                try await me.log("enters")
                try await me.work()
                let isLast = board.values.count { $0 == "second" } == 1
                try await rooms.change([me.name: nil, "first door": isLast ? nil : "shut"], "leaves", wakes: [])
                return true
            }
        }
    }

    /// Repeats `isDone` under a weak mutex until it returns `true`.
    ///
    /// The mutex is weak because there is no queue: a process tries again after a random pause,
    /// some less often than others.
    private func weakly(_ me: Player, _ isDone: () async throws -> Bool) async throws {
        let mutex = try me.coordinator.mutex("weak mutex")
        while true {
            if let lease = try await mutex.tryLock() {
                let isDone = try await isDone()
                try await lease.release()
                if isDone { return }
            }
            try await Task.sleep(for: .microseconds(Int.random(in: 0...500) * me.index))
        }
    }

    func check(_ log: Log) -> [Invariant] {
        [
            log.atMost(1, "never two in the critical section", from: "enters", to: "leaves"),
            log.overtaking(
                "nobody is passed more than twice by the same other", asks: "asks", gets: "enters", limit: 2),
        ]
    }
}
