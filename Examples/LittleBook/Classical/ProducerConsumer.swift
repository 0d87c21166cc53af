// Producers and consumers: producers make items and put them into a buffer, and consumers take them
// out and use them. A consumer waits while the buffer is empty. The buffer has more places than are
// ever used.
//
// As in the book, a mutex is held while an item is taken, which keeps the log in order. If a
// process is killed: an item is leased while it is used. If its consumer dies, the item becomes the
// first one again. A producer logs an item before it puts it. If it dies in between, that item may
// be missing; no item is put twice.
import RedisDC

struct ProducerConsumer: Problem {
    let name = "producer-consumer"
    let title = "Consumers use what producers make, each item once and in order"
    let chapter = Chapter.classical
    let processes = 4

    func cast(_ processes: Int) -> [Role] {
        [
            Role("producer", processes / 2, roundEnd: "makes", play: producer),
            Role("consumer", processes - processes / 2, roundEnd: "uses", play: consumer),
        ]
    }

    func producer(_ me: Player) async throws {
        let buffer = try buffer(me)
        for number in try await me.roundsUntilAllAreDone() {
            try await me.work()
            try await me.log("makes", number)
            try await buffer.put(Item(producer: me.name, number: number))
        }
    }

    func consumer(_ me: Player) async throws {
        let buffer = try buffer(me)
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

    private func buffer(_ me: Player) throws -> BoundedBuffer<Item> {
        try me.coordinator.boundedBuffer("buffer", capacity: Buffer.maxCapacity)
    }

    func check(_ log: Log) -> [Invariant] { log.items() }
}

/// An item that a producer makes and a consumer uses.
struct Item: Codable, Sendable {
    var producer: String
    var number: Int
}

extension Log {
    /// Checks that every item was made, none is lost or overtaken, and none is used twice.
    ///
    /// The entries are `producer-1 makes 5`, `consumer-1 takes 5 producer-1` in the order of the
    /// buffer, and `consumer-1 uses 5 producer-1`.
    func items() -> [Invariant] {
        func name(_ entry: Entry) -> String {
            "\(entry.number ?? 0) of \(entry.event == "makes" ? entry.player : entry.note)"
        }
        return [
            each("takes", after: "makes", "an item is made before it is taken", key: name), itemsInOrder(),
            itemsUsedOnce(name),
        ]
    }

    private func itemsInOrder() -> Invariant {
        var invariant = Invariant("items of one producer are taken in order, and none is missing", unit: "items")
        var last: [String: Int] = [:]
        var lastEntries: [String: Entry] = [:]
        // The items that dead producers may not have put, and the number of items that dead consumers may have held.
        var notPut: [String: Set<Int>] = [:]
        var heldByDead = 0
        for (line, entry) in entries.enumerated() {
            switch entry.event {
            case Entry.killed:
                if let last = lastEntries[entry.player], last.event == "makes" {
                    notPut[entry.player, default: []].insert(last.number ?? 0)
                }
                if entry.role == "consumer" { heldByDead += 1 }
            case "takes":
                guard let number = entry.number else { continue }
                invariant.checked += 1
                let before = last[entry.note, default: 0]
                let skipped = max(0, number - before - 1)
                let excused = (before + 1..<max(before + 1, number)).count { notPut[entry.note]?.contains($0) == true }
                if number <= before {
                    if heldByDead == 0 { invariant.violate(line, entry, "\(before) was taken before") }
                } else if skipped - excused > heldByDead {
                    invariant.violate(line, entry, "the one before was \(before)")
                }
                last[entry.note] = max(before, number)
            default: break
            }
            lastEntries[entry.player] = entry
        }
        return invariant
    }

    private func itemsUsedOnce(_ name: (Entry) -> String) -> Invariant {
        var invariant = Invariant("no item is used twice, except one of a dead consumer", unit: "items")
        var used: [String: String] = [:]
        var lastEntries: [String: Entry] = [:]
        for (line, entry) in entries.enumerated() {
            if entry.event == "uses" {
                invariant.checked += 1
                if let user = used.updateValue(entry.player, forKey: name(entry)) {
                    invariant.violate(line, entry, "\(user) has used it")
                }
            } else if entry.event == Entry.killed, let last = lastEntries[entry.player], last.event == "uses" {
                used[name(last)] = nil
            }
            lastEntries[entry.player] = entry
        }
        return invariant
    }
}
