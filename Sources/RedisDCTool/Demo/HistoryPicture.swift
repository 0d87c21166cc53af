// A picture of the order of events, as SVG and as a page.
import CommandLineTool

/// The first rounds of a history: a line for each process, downwards in the order of events, and for each round an arrow
/// from each first half to each second half of another process. The rule of the rendezvous is that no arrow points
/// upwards.
struct HistoryPicture {
    private static let roundsShown = 6
    private static let top = 64
    private static let rowHeight = 26

    let history: History
    let titles: [String]

    /// The picture, which may stand in a page or in a file of its own.
    var svg: String {
        let shown = history.events.filter { $0.round <= Self.roundsShown }
        let width = Self.x(history.lanes.count - 1) + 160
        let bottom = Self.top + Self.rowHeight * shown.count
        var lines = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(width) \(bottom + 50)\" width=\"\(width)\" "
                + "font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\" aria-label=\"\(label)\">",
            Self.style,
        ]
        for lane in history.lanes.indices {
            let x = Self.x(lane)
            lines.append("<text class=\"title\" x=\"\(x)\" y=\"28\">\(Self.escaped(titles[lane]))</text>")
            lines.append("<path class=\"lane\" d=\"M\(x) 44V\(bottom)\"/>")
        }
        lines += arrows(shown)
        let start = shown.first?.time ?? 0
        for (row, event) in shown.enumerated() {
            let (x, y) = (Self.x(event.lane), Self.y(row))
            let time = Timeline.milliseconds(event.time - start)
            lines.append("<text class=\"time\" x=\"96\" y=\"\(y + 4)\">\(time)</text>")
            lines.append("<circle class=\"half\(event.half)\" cx=\"\(x)\" cy=\"\(y)\" r=\"6\"/>")
            // Beside the lines, where no arrow is.
            let place = event.lane == 0 ? "class=\"first\" x=\"\(x - 14)\"" : "x=\"\(x + 14)\""
            lines.append("<text \(place) y=\"\(y + 4)\">\(Self.escaped(event.name)), round \(event.round)</text>")
        }
        let rest = history.events.count - shown.count
        let omission = rest > 0 ? "and \(rest) more events. " : ""
        lines.append("<text x=\"24\" y=\"\(bottom + 30)\">\(omission)\(Self.escaped(history.verdict.sentence))</text>")
        lines.append("</svg>")
        return lines.joined(separator: "\n") + "\n"
    }

    /// A page with the picture and what it shows.
    var page: String {
        """
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>The demo of RedisDC</title>
        <style>
        :root { color-scheme: light dark }
        body { font: 16px/1.5 system-ui, sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em }
        svg { max-width: 100%; height: auto }
        </style>
        <h1>A rendezvous of \(history.lanes.count) processes</h1>
        <p>In each round a process has two halves. None may begin its second half before all others have finished their
        first: the processes wait for one another through semaphores in Redis. The times are those of the Redis server, in
        milliseconds. Each arrow begins at a first half and ends at a second half that had to wait for it, so it points
        downwards.</p>
        \(svg)</html>

        """
    }

    private var label: String { Self.escaped("The order of events. \(history.verdict.sentence)") }

    /// An arrow from each first half to each second half of another process in the same round.
    private func arrows(_ shown: [History.Event]) -> [String] {
        var lines: [String] = []
        for (from, first) in shown.enumerated() where first.half == 1 {
            for (to, second) in shown.enumerated()
            where second.half == 2 && second.round == first.round && second.lane != first.lane {
                let kind = from < to ? "" : " wrong"
                lines.append(
                    "<path class=\"arrow\(kind)\" marker-end=\"url(#head)\" d=\"M\(Self.x(first.lane)) \(Self.y(from))"
                        + "L\(Self.x(second.lane)) \(Self.y(to))\"/>")
            }
        }
        return lines
    }

    private static func x(_ lane: Int) -> Int { 250 + 200 * lane }
    private static func y(_ row: Int) -> Int { top + rowHeight * row }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
    }

    private static let style = """
        <style>
        text { fill: #1f2328; paint-order: stroke; stroke: #fff; stroke-width: 4px }
        .title { font-weight: 600; text-anchor: middle }
        .first, .time { text-anchor: end }
        .time { fill: #656d76 }
        .lane { stroke: #8c959f; fill: none }
        .half1 { fill: #fff; stroke: #0969da; stroke-width: 2.5 }
        .half2 { fill: #0969da; stroke: #0969da; stroke-width: 2.5 }
        .arrow { stroke: #54aeff; stroke-width: 1.5; fill: none }
        .wrong { stroke: #cf222e; stroke-width: 2.5 }
        #head path { fill: #54aeff }
        @media (prefers-color-scheme: dark) {
        text { fill: #e6edf3; stroke: #0d1117 } .time { fill: #8b949e } .half1 { fill: #0d1117 }
        }
        </style>
        <defs><marker id="head" viewBox="0 0 10 10" refX="19" refY="5" markerWidth="7" markerHeight="7" orient="auto">
        <path d="M0 0 10 5 0 10z"/></marker></defs>
        """
}
