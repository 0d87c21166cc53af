/// The order of events as a picture: a lane for each process, time going down.
struct Timeline {
    private static let roundsShown = 4

    let history: History
    let titles: [String]

    var text: String {
        let shown = history.events.prefix(Self.roundsShown * history.lanes.count * 2)
        guard let start = shown.first?.time, let last = history.events.last else { return "" }
        let width = max(12, (titles.map(\.count).max() ?? 0) + 2)
        var lines = ["", pad("", 12) + titles.map { pad($0, width) }.joined()]
        for event in shown {
            let lane = String(repeating: " ", count: width * event.lane)
            lines.append(pad(milliseconds(event.time - start), 12) + lane + "\(event.name)  round \(event.round)")
        }
        let rest = history.events.count - shown.count
        if rest > 0 {
            lines.append(pad("…", 12) + "\(rest) more events")
            lines.append(pad(milliseconds(last.time - start), 12) + "\(last.name)  round \(last.round), the last")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func milliseconds(_ microseconds: Int) -> String {
        let fraction = String(microseconds % 1000)
        return "\(microseconds / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction + " ms"
    }

    private func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
