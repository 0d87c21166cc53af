import CoreMetrics
import NIOConcurrencyHelpers

/// Collects metrics, and prints them in the text format of Prometheus.
final class MetricsPage: MetricsFactory, Sendable {
    /// One line: a name with its labels.
    private struct Line: Hashable {
        var name: String
        var labels: String
    }

    /// A number that only this page reads.
    final class Cell: CounterHandler, FloatingPointCounterHandler, MeterHandler, RecorderHandler, TimerHandler, Sendable
    {
        /// How values become numbers of the page.
        enum Kind: String, Sendable {
            case counter, gauge, summary
        }

        let kind: Kind
        private let numbers = NIOLockedValueBox((sum: 0.0, count: 0))

        init(_ kind: Kind) { self.kind = kind }

        var value: (sum: Double, count: Int) { numbers.withLockedValue { $0 } }

        func increment(by amount: Int64) { increment(by: Double(amount)) }
        func increment(by amount: Double) { numbers.withLockedValue { $0.sum += amount } }
        func decrement(by amount: Double) { increment(by: -amount) }
        func reset() { numbers.withLockedValue { $0 = (0, 0) } }
        func set(_ value: Int64) { set(Double(value)) }
        func set(_ value: Double) { numbers.withLockedValue { $0.sum = value } }
        func record(_ value: Int64) { record(Double(value)) }
        func record(_ value: Double) {
            numbers.withLockedValue { $0 = kind == .gauge ? (value, 1) : ($0.sum + value, $0.count + 1) }
        }
        func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    }

    private let cells = NIOLockedValueBox<[Line: Cell]>([:])

    private func cell(_ kind: Cell.Kind, _ label: String, _ dimensions: [(String, String)]) -> Cell {
        let labels = dimensions.map { "\(Self.name($0.0))=\"\(Self.escaped($0.1))\"" }.joined(separator: ",")
        return cells.withLockedValue { cells in
            let line = Line(name: Self.name(label), labels: labels)
            if let cell = cells[line] { return cell }
            let cell = Cell(kind)
            cells[line] = cell
            return cell
        }
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        cell(.counter, label, dimensions)
    }

    func makeFloatingPointCounter(label: String, dimensions: [(String, String)]) -> any FloatingPointCounterHandler {
        cell(.counter, label, dimensions)
    }

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        cell(.gauge, label, dimensions)
    }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        cell(aggregate ? .summary : .gauge, label, dimensions)
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        cell(.summary, label + "_seconds", dimensions)
    }

    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}

    /// The page.
    var text: String {
        let cells = cells.withLockedValue { $0 }.sorted { ($0.key.name, $0.key.labels) < ($1.key.name, $1.key.labels) }
        var lines: [String] = []
        var lastName = ""
        for (line, cell) in cells {
            if line.name != lastName { lines.append("# TYPE \(line.name) \(cell.kind.rawValue)") }
            lastName = line.name
            let labels = line.labels.isEmpty ? "" : "{\(line.labels)}"
            switch cell.kind {
            case .counter, .gauge: lines.append("\(line.name)\(labels) \(cell.value.sum)")
            case .summary:
                lines.append("\(line.name)_sum\(labels) \(cell.value.sum)")
                lines.append("\(line.name)_count\(labels) \(cell.value.count)")
            }
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func name(_ label: String) -> String {
        let characters = label.map { $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "_" ? $0 : "_" }
        return characters.first?.isNumber == true ? "_" + String(characters) : String(characters)
    }

    private static func escaped(_ value: String) -> String {
        value.flatMap { character -> [Character] in
            switch character {
            case "\\": ["\\", "\\"]
            case "\"": ["\\", "\""]
            case "\n": ["\\", "n"]
            default: [character]
            }
        }.map { String($0) }.joined()
    }
}
