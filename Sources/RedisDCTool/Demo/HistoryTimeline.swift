import CommandLineTool

/// A diagram of the order of events: the first rounds, and the last event.
struct HistoryTimeline {
    private static let roundsShown = 4

    let history: History
    let titles: [String]

    var text: String {
        let shown = history.events.prefix(Self.roundsShown * history.lanes.count * 2)
        guard let start = shown.first?.time, let last = history.events.last else { return "" }
        var timeline = Timeline(columns: titles, columnWidth: max(12, (titles.map(\.count).max() ?? 0) + 2))
        for event in shown {
            timeline.add("\(event.name)  round \(event.round)", column: event.lane, microseconds: event.time - start)
        }
        let rest = history.events.count - shown.count
        if rest > 0 {
            timeline.addOmission(of: rest)
            timeline.add("\(last.name)  round \(last.round), the last", column: 0, microseconds: last.time - start)
        }
        return "\n" + timeline.text + "\n"
    }
}
