// What the check of a log says.

/// One thing that must be true, and whether it was.
public struct Invariant: Sendable {
    /// The invariant in words, always the same ones.
    public let statement: String
    /// What was looked at, for instance `entries`.
    public let unit: String
    /// How often it was looked at. What was never looked at was not found true.
    public var checked = 0
    /// More numbers, for the reader.
    public var remark = ""
    public private(set) var violations: [String] = []

    public init(_ statement: String, unit: String) { (self.statement, self.unit) = (statement, unit) }

    public var holds: Bool { violations.isEmpty && checked > 0 }

    /// - Parameter line: of the log, from 0.
    public mutating func violate(_ line: Int, _ entry: Entry, _ why: String) {
        violations.append("line \(line + 1), \(entry.text): \(why)")
    }

    public var sentence: String {
        let numbers = "\(checked) \(unit)" + (remark.isEmpty ? "" : ", \(remark)")
        return "\(statement): \(holds ? "yes" : "NO") (\(numbers))"
    }
}
