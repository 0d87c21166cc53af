// Finite buffer: like producers and consumers, but the buffer has only three places. A producer
// waits while all are full.
//
// The book counts items and places with two semaphores. The bounded buffer combines both and turns
// a place into an item in one step. If a process is killed: a producer that dies during a put has
// either put the item or left the place free. The item of a dead consumer returns to its place.
import RedisDC

struct FiniteBuffer: Problem {
    let name = "finite-buffer"
    let title = "Producers and consumers with a buffer of three places"
    let chapter = Chapter.classical
    let processes = 4
    private let capacity = 3

    func cast(_ processes: Int) -> [Role] {
        let consumers = max(1, processes / 3)
        return [
            Role("producer", processes - consumers, roundEnd: "makes", play: producer),
            Role("consumer", consumers, roundEnd: "uses", play: consumer),
        ]
    }

    func producer(_ me: Player) async throws {
        let buffer = try me.coordinator.boundedBuffer("buffer", of: Item.self, capacity: capacity)
        for number in try await me.roundsUntilAllAreDone() {
            try await me.log("makes", number)
            try await buffer.put(Item(producer: me.name, number: number))
            try await me.log("puts", number)
        }
    }

    func consumer(_ me: Player) async throws {
        let buffer = try me.coordinator.boundedBuffer("buffer", of: Item.self, capacity: capacity)
        let mutex = try me.coordinator.mutex("mutex")
        while true {
            let turn = try await mutex.lock()
            try await buffer.withItem { item in
                try await me.log("takes", item.number, item.producer)
                try await turn.release()
                try await me.work()
                try await me.log("uses", item.number, item.producer)
            }
        }
    }

    func check(_ log: Log) -> [Invariant] { log.items() + [placesSuffice(log)] }

    private func placesSuffice(_ log: Log) -> Invariant {
        var invariant = Invariant("never more items than places", unit: "items put")
        // A producer logs an item after the put, when the item may have been used already.
        var (there, used): (Set<String>, Set<String>) = ([], [])
        var maxCount = 0
        for (line, entry) in log.entries.enumerated() {
            if entry.event == "uses" {
                let item = "\(entry.note) \(entry.number ?? 0)"
                used.insert(item)
                there.remove(item)
            } else if entry.event == "puts" {
                invariant.checked += 1
                let item = "\(entry.player) \(entry.number ?? 0)"
                if !used.contains(item) { there.insert(item) }
                maxCount = max(maxCount, there.count)
                if there.count > capacity {
                    invariant.violate(line, entry, "in the buffer: \(there.sorted().joined(separator: ", "))")
                }
            }
        }
        invariant.remark = "at most \(maxCount) in the buffer"
        return invariant
    }
}
