import Foundation

/// The figures of all rounds, their medians, and the ratios to the first row of each group.
struct Table {
    private struct Row: Encodable {
        var group: String
        var name: String
        /// Times in microseconds, or rates in 1/s; one for each round.
        var values: [Double]
        var p99: [Double]
        var isRate: Bool
        var goal: String?
    }

    private struct Result: Encodable {
        var group: String
        var name: String
        var median: Double
        var least: Double
        var greatest: Double
        var p99: Double?
        var ratio: Double
        var goal: String?
    }

    private var rows: [Row] = []

    mutating func add(_ group: String, _ name: String, _ figures: Figures, goal: String?) {
        add(Row(group: group, name: name, values: [figures.p50_us], p99: [figures.p99_us], isRate: false, goal: goal))
    }

    mutating func add(_ group: String, _ name: String, rate: Double, goal: String?) {
        add(Row(group: group, name: name, values: [rate], p99: [], isRate: true, goal: goal))
    }

    private mutating func add(_ row: Row) {
        if let index = rows.firstIndex(where: { $0.group == row.group && $0.name == row.name }) {
            rows[index].values += row.values
            rows[index].p99 += row.p99
        } else {
            rows.append(row)
        }
    }

    private var results: [Result] {
        rows.map { row in
            let floor = median(rows.first { $0.group == row.group }?.values ?? [])
            let middle = median(row.values)
            return Result(
                group: row.group, name: row.name, median: middle, least: row.values.min() ?? 0,
                greatest: row.values.max() ?? 0, p99: row.p99.isEmpty ? nil : median(row.p99),
                ratio: floor > 0 ? middle / floor : 0, goal: row.goal)
        }
    }

    private func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return 0 }
        return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }

    var text: String {
        var lines: [String] = []
        var group = ""
        for result in results {
            if result.group != group {
                group = result.group
                lines += [
                    "", "### \(group)", "", "| | median | spread | p99 | ratio | to reach |",
                    "|---|---|---|---|---|---|",
                ]
            }
            let cells = [
                result.name, number(result.median), "\(number(result.least)) to \(number(result.greatest))",
                result.p99.map(number) ?? "", String(format: "%.2f", result.ratio), result.goal ?? "",
            ]
            lines.append("| " + cells.joined(separator: " | ") + " |")
        }
        return lines.joined(separator: "\n")
    }

    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        return (try? encoder.encode(results)).map { String(decoding: $0, as: UTF8.self) + "\n" } ?? ""
    }

    private func number(_ value: Double) -> String {
        value >= 1000 ? String(format: "%.0f", value) : String(format: "%.2f", value)
    }
}
