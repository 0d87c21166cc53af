import CommandLineTool
import LittleBook

/// A diagram of a log: the first events, and the events around a death.
struct LogTimeline {
    private static let shownAtStart = 14
    private static let shownAroundDeath = 4

    let log: Log

    var text: String {
        guard let start = log.entries.first?.time else { return "The log is empty." }
        let widths = shown.map { log.entries[$0].action.count } + log.players.map(\.count)
        var timeline = Timeline(columns: log.players, columnWidth: (widths.max() ?? 0) + 2)
        var next = 0
        for index in shown {
            let entry = log.entries[index]
            if index > next { timeline.addOmission(of: index - next) }
            timeline.add(
                entry.action, column: log.players.firstIndex(of: entry.player) ?? 0, microseconds: entry.time - start)
            next = index + 1
        }
        if next < log.entries.count { timeline.addOmission(of: log.entries.count - next) }
        return timeline.text
    }

    /// The indices of the entries to show, in order.
    private var shown: [Int] {
        var shown = Set(log.entries.indices.prefix(Self.shownAtStart))
        for (index, entry) in log.entries.enumerated() where [Entry.killed, Entry.back].contains(entry.event) {
            shown.formUnion(index - Self.shownAroundDeath...index + Self.shownAroundDeath)
        }
        return shown.filter(log.entries.indices.contains).sorted()
    }
}
