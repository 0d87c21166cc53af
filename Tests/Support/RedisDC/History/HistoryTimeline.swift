// The part of a history around a fault, as readable text.
import TestHistory

extension History {
    /// Returns the calls on the same resource around the return of one call, as bars over time, in
    /// the order of calls.
    ///
    /// - Parameter other: Another call to show in any case.
    func timeline(around place: Int, with other: Int? = nil, width: Int = 48) -> String {
        let call = calls[place]
        let end = call.returned ?? call.called
        let isNear = { (candidate: Call) in
            candidate.resource == call.resource && candidate.called <= end
        }
        let before = calls.indices.filter { isNear(calls[$0]) }.sorted { calls[$0].called < calls[$1].called }
        // The 24 latest, and of the earlier ones those that had not returned.
        var shown = Set(before.suffix(24))
        for candidate in before where calls[candidate].returned == nil { shown.insert(candidate) }
        shown.formUnion([place, other ?? place])
        let lines = shown.sorted { calls[$0].called < calls[$1].called }
        let recent = before.suffix(24).first ?? place
        let from = min(calls[recent].called, call.called)
        let span = max(1, Double(end - from))
        func column(_ time: UInt64) -> Int {
            time <= from ? 0 : min(width - 1, Int(Double(time - from) / span * Double(width - 1)))
        }
        return lines.map { line -> String in
            let shown = calls[line]
            let (first, last) = (column(shown.called), shown.returned.map(column) ?? width - 1)
            var bar = Array(repeating: Character(" "), count: width)
            for index in first...max(first, last) { bar[index] = "-" }
            bar[first] = "["
            if let returned = shown.returned, returned <= end { bar[max(first, last)] = first == last ? "|" : "]" }
            let offset = Int64(bitPattern: shown.called &- from) / 1000
            return "\(String(bar)) \(offset) us  \(shown)" + (line == place ? " <<<" : "")
        }.joined(separator: "\n")
    }
}

extension History.Call: CustomStringConvertible {
    var description: String {
        var text = "process \(process) task \(task) #\(id): \(verb) \(count) of \(resource)"
        if verb == .release { text += ", acquired by #\(claim)" }
        guard let returned else { return text + ", no answer" }
        text += ", \(outcome) after \((returned - called) / 1000) us"
        return fence > 0 ? text + ", fence \(fence)" : text
    }
}
