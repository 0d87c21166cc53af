/// A text diagram of events in order: one column for each process, one line for each event, time
/// downwards.
package struct Timeline {
    private static let timeWidth = 12

    private let columnWidth: Int
    private var lines: [String]

    package init(columns: [String], columnWidth: Int) {
        self.columnWidth = columnWidth
        lines = [Self.pad("", Self.timeWidth) + columns.map { Self.pad($0, columnWidth) }.joined()]
    }

    package var text: String { lines.joined(separator: "\n") }

    /// Adds a line with an event.
    ///
    /// - Parameters:
    ///   - column: the index of its process.
    ///   - microseconds: the time since the first event.
    package mutating func add(_ event: String, column: Int, microseconds: Int) {
        lines.append(
            Self.pad(Self.milliseconds(microseconds), Self.timeWidth) + Self.pad("", columnWidth * column) + event)
    }

    /// Adds a line that stands for `count` events that are not shown.
    package mutating func addOmission(of count: Int) {
        lines.append(Self.pad("…", Self.timeWidth) + "\(count) more events")
    }

    /// A duration in milliseconds as text.
    package static func milliseconds(_ microseconds: Int) -> String {
        let fraction = String(microseconds % 1000)
        return "\(microseconds / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction + " ms"
    }

    private static func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
