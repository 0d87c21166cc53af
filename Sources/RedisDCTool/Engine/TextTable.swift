// Tables and durations as text for people.

/// A table with aligned columns, two spaces apart.
struct TextTable {
    enum Column {
        case left(String)
        case right(String)

        fileprivate var title: String {
            switch self {
            case .left(let title), .right(let title): title
            }
        }
    }

    private let columns: [Column]
    private var rows: [[String]]

    init(_ columns: [Column]) {
        self.columns = columns
        rows = [columns.map(\.title)]
    }

    mutating func add(_ cells: [String]) { rows.append(cells.map(Self.printable)) }

    var lines: [String] {
        let widths = columns.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let line = zip(columns, zip(row, widths)).map { column, cell in
                let padding = String(repeating: " ", count: cell.1 - cell.0.count)
                return if case .left = column { cell.0 + padding } else { padding + cell.0 }
            }.joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed())
        }
    }

    /// Replaces control characters: names chosen by other processes must not move the cursor of the
    /// terminal.
    private static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }
}

extension Duration {
    /// Text for people: "12.3 s", "5 m 12 s", "3 h 5 m" or "2 d 4 h".
    var readable: String {
        let whole = Int(components.seconds)
        switch whole {
        case ..<60: return "\(((self / .milliseconds(100)).rounded(.down)) / 10) s"
        case ..<3600: return "\(whole / 60) m \(whole % 60) s"
        case ..<86400: return "\(whole / 3600) h \(whole / 60 % 60) m"
        default: return "\(whole / 86400) d \(whole / 3600 % 24) h"
        }
    }
}
