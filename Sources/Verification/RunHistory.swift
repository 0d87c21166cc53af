// A whole history, and its form as JSON lines.
package import Foundation

/// The events of all processes of a run in the order of their times, and the settings of the run.
package struct RunHistory: Sendable {
    /// The first line of a history.
    package struct Header: Codable, Sendable, Equatable {
        package var format = Self.name
        package var version = 1
        package var seed: UInt64
        /// The time to live of the sessions in milliseconds.
        package var ttl: Int
        /// The families of primitives that took part.
        package var families: [Family]
        /// Whether the deployment may lose nothing that it has confirmed.
        package var isLossless: Bool
        /// Whether the processes were those of another program, of whose locks only the exclusion is judged.
        package var isRival: Bool?

        package static let name = "redisdc verify"

        package init(seed: UInt64, ttl: Int, families: [Family], isLossless: Bool, isRival: Bool? = nil) {
            (self.seed, self.ttl, self.families, self.isLossless) = (seed, ttl, families, isLossless)
            self.isRival = isRival
        }
    }

    /// A text that is not a history.
    package struct Unreadable: Error {
        /// The fault in the file, with the number of the line.
        package var message: String
    }

    package let header: Header
    package let events: [Event]

    package init(_ header: Header, _ events: [Event]) {
        self.header = header
        // By place among equal times, so that the events of one process keep their order.
        self.events = events.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }
            .map(\.element)
    }

    /// Reads a history from JSON lines.
    ///
    /// - Throws: ``Unreadable``.
    package init(_ text: Data) throws(Unreadable) {
        var header: Header?
        var events: [Event] = []
        for (number, line) in text.split(separator: UInt8(ascii: "\n")).enumerated() {
            do {
                if number == 0 {
                    header = try JSONDecoder().decode(Header.self, from: line)
                } else {
                    events.append(try JSONDecoder().decode(Event.self, from: line))
                }
            } catch {
                throw Unreadable(message: "line \(number + 1) is not a line of a history: \(error)")
            }
        }
        guard let header, header.format == Header.name else { throw Unreadable(message: "the first line is missing") }
        guard header.version == 1 else {
            throw Unreadable(message: "the history has version \(header.version), expected 1")
        }
        self.init(header, events)
    }

    /// The history as JSON lines.
    package func lines() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var text = try encoder.encode(header)
        for event in events { text += try Data([UInt8(ascii: "\n")]) + encoder.encode(event) }
        return text + [UInt8(ascii: "\n")]
    }
}

/// A family of primitives that a run can use.
package enum Family: String, Codable, Sendable, CaseIterable {
    case locks, semaphores, barriers, mail
}
