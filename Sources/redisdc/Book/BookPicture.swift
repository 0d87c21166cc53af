import LittleBook

/// The order of events as a picture: a lane for each process, time going down; the beginning, and what is around a death.
struct BookPicture {
    private static let shownAtTheBeginning = 14
    private static let shownAroundDeath = 4

    let log: Log

    var text: String {
        guard let start = log.entries.first?.time else { return "Nobody has said anything." }
        let longest = shown.map { log.entries[$0].action.count } + log.players.map(\.count)
        let width = (longest.max() ?? 0) + 2
        var lines = [pad("", 12) + log.players.map { pad($0, width) }.joined()]
        var next = 0
        for index in shown {
            let entry = log.entries[index]
            if index > next { lines.append(pad("…", 12) + "\(index - next) more events") }
            let lane = log.players.firstIndex(of: entry.player) ?? 0
            lines.append(
                pad(milliseconds(entry.time - start), 12) + pad("", width * lane) + entry.action)
            next = index + 1
        }
        if next < log.entries.count { lines.append(pad("…", 12) + "\(log.entries.count - next) more events") }
        return lines.joined(separator: "\n")
    }

    private var shown: [Int] {
        var shown = Set(log.entries.indices.prefix(Self.shownAtTheBeginning))
        for (index, entry) in log.entries.enumerated() where [Entry.killed, Entry.back].contains(entry.event) {
            shown.formUnion(index - Self.shownAroundDeath...index + Self.shownAroundDeath)
        }
        return shown.filter(log.entries.indices.contains).sorted()
    }

    private func milliseconds(_ microseconds: Int) -> String {
        let fraction = String(microseconds % 1000)
        return "\(microseconds / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction + " ms"
    }

    private func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
