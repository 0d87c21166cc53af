import Foundation

/// A table of the figures of all rounds: medians, and ratios to the first row of each group.
struct Table {
    /// Further columns of a row.
    typealias Also = [(title: String, value: Double)]

    private struct Row {
        var group: String
        var name: String
        /// Times, rates or sizes, one for each round.
        var values: [Double]
        var also: [(title: String, values: [Double])]
        var isCompared: Bool
        var goal: String?
    }

    private struct Result: Encodable {
        var group: String
        var name: String
        var median: Double
        var least: Double
        var greatest: Double
        var also: [String: Double]?
        var ratio: Double?
        var goal: String?
    }

    private var rows: [Row] = []
    private var notes: [String] = []

    mutating func add(_ group: String, _ name: String, _ figures: Figures, goal: String?) {
        add(group, name, figures.p50_us, also: [("p99", figures.p99_us)], goal: goal)
    }

    /// Adds a value of one round to the row of this name.
    ///
    /// - Parameter isCompared: Whether the row shows its ratio to the first row of the group.
    mutating func add(
        _ group: String, _ name: String, _ value: Double, also: Also = [], isCompared: Bool = true, goal: String? = nil
    ) {
        if let index = rows.firstIndex(where: { $0.group == group && $0.name == name }) {
            rows[index].values.append(value)
            for (column, more) in also.enumerated() { rows[index].also[column].values.append(more.value) }
        } else {
            rows.append(
                Row(
                    group: group, name: name, values: [value], also: also.map { ($0.title, [$0.value]) },
                    isCompared: isCompared, goal: goal))
        }
    }

    /// Adds a note below the tables. Repeated notes appear once.
    mutating func note(_ text: String) {
        if !notes.contains(text) { notes.append(text) }
    }

    // MARK: Results

    private func result(_ row: Row) -> Result {
        let floor = median(rows.first { $0.group == row.group }?.values ?? [])
        let middle = median(row.values)
        return Result(
            group: row.group, name: row.name, median: middle, least: row.values.min() ?? 0,
            greatest: row.values.max() ?? 0,
            also: row.also.isEmpty
                ? nil
                : Dictionary(row.also.map { ($0.title, median($0.values)) }, uniquingKeysWith: { first, _ in first }),
            ratio: row.isCompared && floor > 0 ? middle / floor : nil, goal: row.goal)
    }

    private func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return 0 }
        return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }

    var text: String {
        var groups: [String] = []
        for row in rows where !groups.contains(row.group) { groups.append(row.group) }
        return (groups.map(table) + notes).joined(separator: "\n\n")
    }

    private func table(_ group: String) -> String {
        let rows = rows.filter { $0.group == group }
        let also = rows.max { $0.also.count < $1.also.count }?.also.map(\.title) ?? []
        let header = ["", "median", "range"] + also + ["ratio", "target"]
        var lines = [
            "### \(group)", "", "| " + header.joined(separator: " | ") + " |",
            "|" + String(repeating: "---|", count: header.count),
        ]
        for result in rows.map(result) {
            let cells =
                [result.name, number(result.median), "\(number(result.least)) to \(number(result.greatest))"]
                + also.map { result.also?[$0].map(number) ?? "" }
                + [result.ratio.map { String(format: "%.2f", $0) } ?? "", result.goal ?? ""]
            lines.append("| " + cells.joined(separator: " | ") + " |")
        }
        return lines.joined(separator: "\n")
    }

    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        return (try? encoder.encode(rows.map(result))).map { String(decoding: $0, as: UTF8.self) + "\n" } ?? ""
    }

    private func number(_ value: Double) -> String {
        value >= 1000 || value == value.rounded() ? String(format: "%.0f", value) : String(format: "%.2f", value)
    }
}
