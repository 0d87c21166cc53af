// Reads histories while they are written.
import Foundation

/// Reads what the processes of a run append to the files in a folder.
package struct HistoryTail {
    private struct Place {
        var offset: UInt64 = 0
        /// The beginning of a line whose end was not yet written.
        var rest = Data()
    }
    private let folder: String
    private var places: [String: Place] = [:]
    /// The events that were read so far.
    package private(set) var events: [Event] = []

    package init(folder: String) { self.folder = folder }

    /// Reads the lines that are new and complete, and returns their events in the order of their times.
    package mutating func read() -> [Event] {
        let before = events.count
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names.sorted() {
            var place = places[name] ?? Place()
            guard let file = FileHandle(forReadingAtPath: "\(folder)/\(name)") else { continue }
            defer { try? file.close() }
            guard (try? file.seek(toOffset: place.offset)) != nil, let text = try? file.readToEnd() else { continue }
            place.offset += UInt64(text.count)
            let all = place.rest + text
            let end = all.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? all.startIndex
            place.rest = Data(all[end...])
            places[name] = place
            for line in all[..<end].split(separator: UInt8(ascii: "\n")) {
                // Only this library writes here, and a process that is killed leaves an incomplete last line at most.
                if let event = try? JSONDecoder().decode(Event.self, from: line) { events.append(event) }
            }
        }
        return events[before...].sorted { $0.time < $1.time }
    }
}
