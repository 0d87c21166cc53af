// The events of a world as a picture in SVG: a column for each process, and time from top to bottom.

/// Draws events, each a text of the form `SECONDS TEXT`, in which what a process does begins with `process NUMBER`.
struct TimelinePicture {
    private struct Row {
        var time: String
        /// The number of the process; `nil` for the server and the network.
        var process: Int?
        var text: String
    }

    private let rows: [Row]
    private let title: String

    init(_ events: some Sequence<String>, title: String) {
        rows = events.map { event in
            let parts = event.split(separator: " ", maxSplits: 1).map(String.init)
            let text = parts.count == 2 ? parts[1] : event
            guard text.hasPrefix("process ") else { return Row(time: parts[0], process: nil, text: text) }
            let rest = text.dropFirst("process ".count)
            let digits = rest.prefix { $0.isNumber }
            return Row(
                time: parts[0], process: Int(digits),
                text: rest.dropFirst(digits.count).drop { $0 == ":" || $0 == " " }.description)
        }
        self.title = title
    }

    private static let (lane, row, top, margin) = (230, 18, 64, 90)

    /// The columns: the server first, then the processes.
    private var processes: [Int] { Set(rows.compactMap(\.process)).sorted() }

    var svg: String {
        let columns = [nil] + processes.map(Optional.some)
        let (width, height) = (Self.margin + columns.count * Self.lane, Self.top + rows.count * Self.row + 20)
        var lines = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"\(width)\" height=\"\(height)\" font-family=\"sans-serif\""
                + " font-size=\"11\">",
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
            "<text x=\"8\" y=\"20\" font-size=\"14\" font-weight=\"bold\">\(Self.escaped(title))</text>",
        ]
        for (index, process) in columns.enumerated() {
            let x = Self.x(index)
            lines.append(
                "<text x=\"\(x)\" y=\"46\" font-weight=\"bold\">\(process.map { "process \($0)" } ?? "server")</text>")
            lines.append(
                "<line x1=\"\(x - 8)\" y1=\"52\" x2=\"\(x - 8)\" y2=\"\(height - 10)\" stroke=\"#ccc\"/>")
        }
        for (index, row) in rows.enumerated() {
            lines += draw(row, at: Self.top + index * Self.row, in: columns.firstIndex(of: row.process) ?? 0, width)
        }
        return (lines + ["</svg>", ""]).joined(separator: "\n")
    }

    private static func x(_ column: Int) -> Int { margin + column * lane }

    private func draw(_ row: Row, at y: Int, in column: Int, _ width: Int) -> [String] {
        let (x, isViolation) = (Self.x(column), row.text.hasPrefix("VIOLATION"))
        let color = isViolation ? "#c00" : Self.color(of: row.text)
        // A violation may be longer than its column, and its line is across all of them.
        let shown = isViolation || row.text.count <= 40 ? row.text : row.text.prefix(39) + "…"
        return [
            isViolation ? "<rect x=\"0\" y=\"\(y - 2)\" width=\"\(width)\" height=\"\(Self.row)\" fill=\"#fdd\"/>" : "",
            "<text x=\"8\" y=\"\(y + 11)\" fill=\"#777\">\(row.time) s</text>",
            "<circle cx=\"\(x - 8)\" cy=\"\(y + 7)\" r=\"4\" fill=\"\(color)\"/>",
            "<text x=\"\(x)\" y=\"\(y + 11)\" fill=\"\(color)\"><title>\(Self.escaped(row.text))</title>"
                + "\(Self.escaped(String(shown)))</text>",
        ].filter { !$0.isEmpty }
    }

    /// Faults are orange, what a task gets is blue, and everything else is grey.
    private static func color(of text: String) -> String {
        let faults = ["dies", "stops", "cut off", "leaves", "breaks", "restarts", "promoted", "clock"]
        if faults.contains(where: text.contains) { return "#c60" }
        return text.hasPrefix("has ") ? "#06c" : "#555"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }
}
